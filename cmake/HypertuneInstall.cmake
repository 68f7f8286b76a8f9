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

set(libraries hypertune hypertune_compiled hypertune_local hypertune_conformance hypertune_boost_json hypertune_remote
  hypertune_ssh hypertune_slurm hypertune_train hypertune_mlflow hypertune_import)
if(TARGET hypertune_transfer)   # if it exists, hypertune_remote needs it
  list(APPEND libraries hypertune_transfer)
  set_target_properties(hypertune_transfer PROPERTIES EXCLUDE_FROM_ALL OFF)
  set(HYPERTUNE_HAS_TRANSFER ON)
endif()
if(TARGET hypertune_dashboard)
  list(APPEND libraries hypertune_dashboard)
  set_target_properties(hypertune_dashboard PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()
if(TARGET hypertune_arrow)
  list(APPEND libraries hypertune_arrow)
  set_target_properties(hypertune_arrow PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()
set_target_properties(hypertune_compiled hypertune_boost_json hypertune_remote hypertune_ssh hypertune_slurm hypertune_train hypertune_mlflow hypertune_import PROPERTIES EXCLUDE_FROM_ALL OFF)
install(TARGETS ${libraries} EXPORT hypertune
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT hypertune NAMESPACE hypertune:: FILE hypertuneTargets.cmake DESTINATION ${package_dir}
  COMPONENT development)
if(TARGET hypertune_yaml)   # a separate file, so that a consumer without yaml-cpp still gets the other targets
  set(yaml_libraries hypertune_yaml_compiled hypertune_machines hypertune_cluster)
  if(TARGET hypertune_k8s)
    list(APPEND yaml_libraries hypertune_k8s)
  endif()
  set_target_properties(${yaml_libraries} PROPERTIES EXCLUDE_FROM_ALL OFF)
  install(TARGETS hypertune_yaml ${yaml_libraries} EXPORT hypertune_yaml
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT hypertune_yaml NAMESPACE hypertune:: FILE hypertuneYamlTargets.cmake DESTINATION ${package_dir}
    COMPONENT development)
endif()

if(TARGET hypertune_train_cuda)   # a separate file for the same reason: consumers without a CUDA toolkit
  set_target_properties(hypertune_train_cuda PROPERTIES EXCLUDE_FROM_ALL OFF)
  install(TARGETS hypertune_train_cuda EXPORT hypertune_cuda ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT hypertune_cuda NAMESPACE hypertune:: FILE hypertuneCudaTargets.cmake DESTINATION ${package_dir}
    COMPONENT development)
endif()

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
