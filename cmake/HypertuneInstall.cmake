# Installs the headers of all targets into one include folder, and what find_package(hypertune) needs.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hypertune)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
file(GLOB backends ${PROJECT_SOURCE_DIR}/backends/*/include)
foreach(backend ${backends})
  install(DIRECTORY ${backend}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.hpp")
endforeach()
list(TRANSFORM HYPERTUNE_CONFORMANCE PREPEND ${PROJECT_SOURCE_DIR}/tests/support/ OUTPUT_VARIABLE conformance)
list(TRANSFORM conformance APPEND .hpp)
install(FILES ${conformance} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hypertune/conformance COMPONENT development)

# The components of find_package(hypertune), where they are built. Those that need yaml-cpp, or a CUDA toolkit, are exported to
# files of their own, so that a consumer without it still gets the others.
set(HYPERTUNE_COMPONENTS headers compiled local conformance boost_json net serve train arrow import mlflow dashboard remote ssh slurm transfer
  yaml yaml_compiled machines cluster k8s train_cuda)
set(exports hypertune)
set_target_properties(hypertune_library PROPERTIES EXCLUDE_FROM_ALL OFF)
install(TARGETS hypertune_library EXPORT hypertune ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
foreach(component IN LISTS HYPERTUNE_COMPONENTS)
  if(TARGET hypertune_${component})
    set(export hypertune)
    if(component MATCHES "^(yaml|yaml_compiled|machines|cluster|k8s)$")
      set(export hypertuneYaml)
    elseif(component STREQUAL "train_cuda")
      set(export hypertuneCuda)
    endif()
    list(APPEND exports ${export})
    set_target_properties(hypertune_${component} PROPERTIES EXCLUDE_FROM_ALL OFF)
    install(TARGETS hypertune_${component} EXPORT ${export}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endif()
endforeach()
list(REMOVE_DUPLICATES exports)
foreach(export IN LISTS exports)
  install(EXPORT ${export} NAMESPACE hypertune:: FILE ${export}Targets.cmake DESTINATION ${package_dir}
    COMPONENT development)
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hypertuneConfig.cmake.in
  ${PROJECT_BINARY_DIR}/hypertuneConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hypertuneConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)   # and architecture, because there are static libraries
install(FILES ${PROJECT_BINARY_DIR}/hypertuneConfig.cmake ${PROJECT_BINARY_DIR}/hypertuneConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/HypertuneXxHash.cmake
  DESTINATION ${package_dir} COMPONENT development)

if(TARGET hypertune_command)
  install(TARGETS hypertune_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  if(TARGET hypertune_share)   # completion, the manual page, schema
    install(DIRECTORY ${PROJECT_BINARY_DIR}/share/bash-completion ${PROJECT_BINARY_DIR}/share/zsh
      ${PROJECT_BINARY_DIR}/share/fish ${PROJECT_BINARY_DIR}/share/hypertune
      DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT command OPTIONAL)
    install(FILES ${PROJECT_BINARY_DIR}/share/man/man1/hypertune.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command
      OPTIONAL)
  endif()
endif()
