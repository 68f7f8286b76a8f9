# The library's targets. INTERFACE targets are header-only; they link exactly the libraries that their headers include.
include(GNUInstallDirs)

# A parent project links these targets: the imported targets that they use must be visible there too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(SQLite3 REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/HypertuneXxHash.cmake)
if(NOT TARGET hypertune::xxhash)
  message(FATAL_ERROR "hypertune: ${hypertune_xxhash_missing}")
endif()
hypertune_find_optional(yaml-cpp)
if(yaml-cpp_FOUND AND NOT TARGET yaml-cpp::yaml-cpp)   # version 0.7 calls its target yaml-cpp
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED GLOBAL)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()
hypertune_find_optional(Eigen3 TARGETS Eigen3::Eigen)

set(hypertune_root ${CMAKE_CURRENT_LIST_DIR}/..)

# Core: spaces, searchers, schedulers, the Tuner, the Journal, the in-process executors. A program that links the headers
# alone has the definitions in one file of its own: <hypertune/src.hpp>.
add_library(hypertune_headers INTERFACE)
add_library(hypertune::headers ALIAS hypertune_headers)
set_target_properties(hypertune_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(hypertune_headers INTERFACE
  $<BUILD_INTERFACE:${hypertune_root}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(hypertune_headers INTERFACE cxx_std_20)
target_link_libraries(hypertune_headers INTERFACE Boost::headers fmt::fmt SQLite::SQLite3 hypertune::xxhash Threads::Threads)

# The definitions, compiled once. Built only if something links it. The target `hypertune` is the command: what a newcomer
# builds by that name.
file(GLOB hypertune_sources CONFIGURE_DEPENDS ${hypertune_root}/src/*.cpp)
add_library(hypertune_library STATIC EXCLUDE_FROM_ALL ${hypertune_sources})
add_library(hypertune::hypertune ALIAS hypertune_library)
set_target_properties(hypertune_library PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME hypertune OUTPUT_NAME hypertune)
target_include_directories(hypertune_library PRIVATE ${hypertune_root}/backends/local/include)
target_link_libraries(hypertune_library PUBLIC hypertune_headers)

# hypertune_old_name(OLD NEW): hypertune::OLD is what hypertune::NEW is called today.
function(hypertune_old_name old new)
  add_library(hypertune_${old} INTERFACE)
  add_library(hypertune::${old} ALIAS hypertune_${old})
  set_target_properties(hypertune_${old} PROPERTIES EXPORT_NAME ${old} DEPRECATION "its name is hypertune::${new} now")
  target_link_libraries(hypertune_${old} INTERFACE ${ARGN})
endfunction()
hypertune_old_name(compiled hypertune hypertune_library)

# Trials in processes of their own on this machine, and trials that are external commands: headers, whose definitions
# are in hypertune::hypertune.
add_library(hypertune_local INTERFACE)
add_library(hypertune::local ALIAS hypertune_local)
set_target_properties(hypertune_local PROPERTIES EXPORT_NAME local)
target_include_directories(hypertune_local INTERFACE
  $<BUILD_INTERFACE:${hypertune_root}/backends/local/include>)
target_link_libraries(hypertune_local INTERFACE hypertune_library)

# The conformance suites of CONTRIBUTING.md, as <hypertune/conformance/NAME.hpp>: for searchers, schedulers and
# executors of your own. Link Catch2 (2.13 or 3) as well.
set(HYPERTUNE_CONFORMANCE searcher_conformance scheduler_conformance executor_conformance
  executor_trials scripted_trial scripted_tuner spaces temporary_directory test)
set(conformance_headers ${CMAKE_CURRENT_BINARY_DIR}/conformance)
foreach(name ${HYPERTUNE_CONFORMANCE})
  file(CONFIGURE OUTPUT ${conformance_headers}/hypertune/conformance/${name}.hpp
    CONTENT "#include \"${hypertune_root}/tests/support/${name}.hpp\"\n")
endforeach()
add_library(hypertune_conformance INTERFACE)
add_library(hypertune::conformance ALIAS hypertune_conformance)
set_target_properties(hypertune_conformance PROPERTIES EXPORT_NAME conformance)
target_include_directories(hypertune_conformance INTERFACE $<BUILD_INTERFACE:${conformance_headers}>)
target_link_libraries(hypertune_conformance INTERFACE hypertune_headers)

# Boost.JSON's definitions, for the compiled libraries. A separate library with weak symbols: if a program gets
# Boost.JSON in another way (its own boost/json/src.hpp, or the library), those symbols are used, in any order of
# linking.
add_library(hypertune_boost_json STATIC EXCLUDE_FROM_ALL ${hypertune_root}/src/boost_json/boost_json.cpp)
add_library(hypertune::boost_json ALIAS hypertune_boost_json)
set_target_properties(hypertune_boost_json PROPERTIES EXPORT_NAME boost_json POSITION_INDEPENDENT_CODE ON)
target_compile_features(hypertune_boost_json PUBLIC cxx_std_20)
target_link_libraries(hypertune_boost_json PUBLIC Boost::headers)
if(CMAKE_OBJCOPY)
  add_custom_command(TARGET hypertune_boost_json POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --weaken $<TARGET_FILE:hypertune_boost_json>)
endif()

# HTTP, TLS and tokens, for all that talks over the network. Without OpenSSL there is no https, and no hypertune::transfer.
hypertune_find_optional(OpenSSL 3.0 TARGETS OpenSSL::SSL OpenSSL::Crypto)
file(GLOB hypertune_net_sources CONFIGURE_DEPENDS ${hypertune_root}/src/net/*.cpp)
if(NOT OpenSSL_FOUND)
  list(FILTER hypertune_net_sources EXCLUDE REGEX "/(openssl|secret|tls|tls_identity)[.]cpp$")
endif()
add_library(hypertune_net STATIC EXCLUDE_FROM_ALL ${hypertune_net_sources})
add_library(hypertune::net ALIAS hypertune_net)
set_target_properties(hypertune_net PROPERTIES EXPORT_NAME net POSITION_INDEPENDENT_CODE ON)
target_link_libraries(hypertune_net PUBLIC hypertune_library)
if(OpenSSL_FOUND)
  target_link_libraries(hypertune_net PUBLIC OpenSSL::SSL OpenSSL::Crypto)
  target_compile_definitions(hypertune_net PRIVATE HYPERTUNE_NET_TLS)
endif()

# The best checkpoint of an experiment behind HTTP. Compiled, so that users do not include Beast and Boost.JSON.
file(GLOB hypertune_serve_sources CONFIGURE_DEPENDS ${hypertune_root}/src/serve/*.cpp)
add_library(hypertune_serve STATIC EXCLUDE_FROM_ALL ${hypertune_serve_sources})
add_library(hypertune::serve ALIAS hypertune_serve)
set_target_properties(hypertune_serve PROPERTIES EXPORT_NAME serve POSITION_INDEPENDENT_CODE ON)
target_include_directories(hypertune_serve PRIVATE ${hypertune_root}/src)
target_link_libraries(hypertune_serve PUBLIC hypertune_local PRIVATE hypertune_net hypertune_boost_json)
if(OpenSSL_FOUND)
  target_compile_definitions(hypertune_serve PRIVATE HYPERTUNE_NET_TLS)
endif()

# Reports and trials as Arrow files. Compiled, so that users do not include FlatBuffers (header-only).
find_path(HYPERTUNE_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h)
mark_as_advanced(HYPERTUNE_FLATBUFFERS_INCLUDE)
if(HYPERTUNE_FLATBUFFERS_INCLUDE)
  file(GLOB hypertune_arrow_sources CONFIGURE_DEPENDS ${hypertune_root}/src/arrow/*.cpp)
  add_library(hypertune_arrow STATIC EXCLUDE_FROM_ALL ${hypertune_arrow_sources})
  add_library(hypertune::arrow ALIAS hypertune_arrow)
  set_target_properties(hypertune_arrow PROPERTIES EXPORT_NAME arrow POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(hypertune_arrow PUBLIC hypertune_library)
  target_include_directories(hypertune_arrow PRIVATE $<BUILD_INTERFACE:${HYPERTUNE_FLATBUFFERS_INCLUDE}>)
else()
  message(STATUS "hypertune: without FlatBuffers (libflatbuffers-dev) there is no hypertune::arrow")
endif()

# hypertune_backend(NAME LIBRARIES...): adds backends/NAME as a compiled library, so that users do not include Asio.
# Built only if something links it.
function(hypertune_backend name)
  file(GLOB sources CONFIGURE_DEPENDS ${hypertune_root}/backends/${name}/src/*.cpp)
  add_library(hypertune_${name} STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(hypertune::${name} ALIAS hypertune_${name})
  set_target_properties(hypertune_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(hypertune_${name} PUBLIC $<BUILD_INTERFACE:${hypertune_root}/backends/${name}/include>)
  target_link_libraries(hypertune_${name} PUBLIC ${ARGN})
endfunction()

hypertune_backend(remote hypertune_local hypertune_boost_json)   # for any connection to agents
hypertune_backend(ssh hypertune_remote)     # by the user's own OpenSSH client
hypertune_backend(slurm hypertune_remote)   # workers are Slurm jobs

# sweep.yaml: the same spaces, algorithms and options, read from YAML.
if(yaml-cpp_FOUND)
  file(GLOB hypertune_yaml_sources CONFIGURE_DEPENDS ${hypertune_root}/src/yaml/*.cpp)
  add_library(hypertune_yaml STATIC EXCLUDE_FROM_ALL ${hypertune_yaml_sources})
  add_library(hypertune::yaml ALIAS hypertune_yaml)
  set_target_properties(hypertune_yaml PROPERTIES EXPORT_NAME yaml POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(hypertune_yaml PUBLIC hypertune_local yaml-cpp::yaml-cpp)
  hypertune_old_name(yaml_compiled yaml hypertune_yaml)
endif()

if(yaml-cpp_FOUND)
  # CLUSTER.yaml, providers of machines, the autoscaler; independent of how the machines are reached.
  file(GLOB hypertune_machines_sources CONFIGURE_DEPENDS ${hypertune_root}/src/cluster/*.cpp)
  add_library(hypertune_machines STATIC EXCLUDE_FROM_ALL ${hypertune_machines_sources})
  add_library(hypertune::machines ALIAS hypertune_machines)
  set_target_properties(hypertune_machines PROPERTIES EXPORT_NAME machines POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(hypertune_machines PUBLIC hypertune_yaml hypertune_remote)
endif()

# Checkpoints between nodes over HTTP. Compiled, so that users do not include Beast, OpenSSL and zstd.
find_path(HYPERTUNE_ZSTD_INCLUDE zstd.h)
find_library(HYPERTUNE_ZSTD_LIBRARY zstd)
mark_as_advanced(HYPERTUNE_ZSTD_INCLUDE HYPERTUNE_ZSTD_LIBRARY)
if(OpenSSL_FOUND AND HYPERTUNE_ZSTD_INCLUDE AND HYPERTUNE_ZSTD_LIBRARY)
  file(GLOB hypertune_transfer_sources CONFIGURE_DEPENDS ${hypertune_root}/src/transfer/*.cpp)
  add_library(hypertune_transfer STATIC EXCLUDE_FROM_ALL ${hypertune_transfer_sources})
  add_library(hypertune::transfer ALIAS hypertune_transfer)
  set_target_properties(hypertune_transfer PROPERTIES EXPORT_NAME transfer POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(hypertune_transfer PUBLIC hypertune_net PRIVATE
    $<BUILD_INTERFACE:${HYPERTUNE_ZSTD_LIBRARY}> $<INSTALL_INTERFACE:zstd>)
  target_include_directories(hypertune_transfer PRIVATE ${hypertune_root}/src $<BUILD_INTERFACE:${HYPERTUNE_ZSTD_INCLUDE}>)
else()
  message(STATUS "hypertune: without OpenSSL 3 and zstd (libssl-dev, libzstd-dev) there is no hypertune::transfer")
endif()

# Runs for an MLflow tracking server. Compiled, so that users do not include Beast; https needs OpenSSL.
file(GLOB hypertune_mlflow_sources CONFIGURE_DEPENDS ${hypertune_root}/src/mlflow/*.cpp)
add_library(hypertune_mlflow STATIC EXCLUDE_FROM_ALL ${hypertune_mlflow_sources})
add_library(hypertune::mlflow ALIAS hypertune_mlflow)
set_target_properties(hypertune_mlflow PROPERTIES EXPORT_NAME mlflow POSITION_INDEPENDENT_CODE ON)
target_include_directories(hypertune_mlflow PRIVATE ${hypertune_root}/src)
target_link_libraries(hypertune_mlflow PUBLIC hypertune_library hypertune_boost_json PRIVATE hypertune_net)
if(OpenSSL_FOUND)
  target_compile_definitions(hypertune_mlflow PRIVATE HYPERTUNE_NET_TLS)
endif()

# Imports experiments of Optuna and Ray Tune. Compiled, because of Boost.JSON.
file(GLOB hypertune_import_sources CONFIGURE_DEPENDS ${hypertune_root}/src/import/*.cpp)
add_library(hypertune_import STATIC EXCLUDE_FROM_ALL ${hypertune_import_sources})
add_library(hypertune::import ALIAS hypertune_import)
set_target_properties(hypertune_import PROPERTIES EXPORT_NAME import POSITION_INDEPENDENT_CODE ON)
target_link_libraries(hypertune_import PUBLIC hypertune_library hypertune_boost_json)

include(${CMAKE_CURRENT_LIST_DIR}/HypertuneDashboard.cmake)

# Workers that are pods of Kubernetes. Compiled, so that users do not include OpenSSL and Beast.
if(TARGET hypertune_transfer AND yaml-cpp_FOUND)   # which copies the checkpoints of its workers
  hypertune_backend(k8s hypertune_remote hypertune_yaml hypertune_transfer)
  target_include_directories(hypertune_k8s PRIVATE ${hypertune_root}/src)
  # Forces the linker to keep the code for --hypertune-pod in every program that links the library.
  target_link_options(hypertune_k8s INTERFACE LINKER:--undefined=hypertune_k8s_keeper_role)
else()
  message(STATUS "hypertune: without hypertune::transfer and yaml-cpp (libyaml-cpp-dev) there is no hypertune::k8s")
endif()

# Clusters: machines reached over ssh, and pods.
if(yaml-cpp_FOUND)
  hypertune_backend(cluster hypertune_machines hypertune_ssh)
  if(TARGET hypertune_k8s)
    target_link_libraries(hypertune_cluster PRIVATE hypertune_k8s)
    target_compile_definitions(hypertune_cluster PRIVATE HYPERTUNE_CLUSTER_K8S)
  else()
    get_target_property(hypertune_cluster_sources hypertune_cluster SOURCES)
    list(FILTER hypertune_cluster_sources EXCLUDE REGEX "/pods[a-z_]*[.]cpp$")
    set_target_properties(hypertune_cluster PROPERTIES SOURCES "${hypertune_cluster_sources}")
  endif()
endif()

# Collectives of trials with several workers. Compiled, so that users do not include Gloo; without Gloo, only threads.
hypertune_find_optional(Gloo CONFIG TARGETS gloo)
if(NOT TARGET gloo)
  find_path(HYPERTUNE_GLOO_INCLUDE gloo/transport/unbound_buffer.h)
  find_library(HYPERTUNE_GLOO_LIBRARY gloo)
  mark_as_advanced(HYPERTUNE_GLOO_INCLUDE HYPERTUNE_GLOO_LIBRARY)
endif()
file(GLOB hypertune_train_sources CONFIGURE_DEPENDS ${hypertune_root}/src/train/*.cpp)
if(TARGET gloo OR (HYPERTUNE_GLOO_INCLUDE AND HYPERTUNE_GLOO_LIBRARY))
  set(HYPERTUNE_HAS_GLOO ON)
  file(GLOB hypertune_gloo_sources CONFIGURE_DEPENDS ${hypertune_root}/src/train/gloo/*.cpp)
else()
  set(HYPERTUNE_HAS_GLOO OFF)
  file(GLOB hypertune_gloo_sources CONFIGURE_DEPENDS ${hypertune_root}/src/train/without_gloo/*.cpp)
  message(STATUS "hypertune: without Gloo (libgloo-dev) the workers of a trial must be threads of one process")
endif()
add_library(hypertune_train STATIC EXCLUDE_FROM_ALL ${hypertune_train_sources} ${hypertune_gloo_sources})
add_library(hypertune::train ALIAS hypertune_train)
set_target_properties(hypertune_train PROPERTIES EXPORT_NAME train POSITION_INDEPENDENT_CODE ON)
target_include_directories(hypertune_train PRIVATE ${hypertune_root}/src/train)
target_link_libraries(hypertune_train PUBLIC hypertune_library)
if(TARGET gloo)
  target_link_libraries(hypertune_train PRIVATE gloo)
elseif(HYPERTUNE_HAS_GLOO)
  target_include_directories(hypertune_train PRIVATE ${HYPERTUNE_GLOO_INCLUDE})
  target_link_libraries(hypertune_train PRIVATE $<BUILD_INTERFACE:${HYPERTUNE_GLOO_LIBRARY}> $<INSTALL_INTERFACE:gloo>)
endif()

# Warnings for hypertune's own code; consumers set their own flags.
add_library(hypertune_warnings INTERFACE)
target_compile_options(hypertune_warnings INTERFACE -Wall -Wextra -Wpedantic
  $<$<BOOL:${HYPERTUNE_WERROR}>:-Werror>
  # g++ 12: false positives on Asio's awaitable_frame_base, and on std::string in optimised code; with -Og, which only
  # Debug builds use, on the contents of an std::optional.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete -Wno-restrict $<$<CONFIG:Debug>:-Wno-maybe-uninitialized>>)
foreach(name net serve remote ssh slurm train mlflow import arrow yaml machines cluster k8s dashboard transfer)
  if(TARGET hypertune_${name})
    target_link_libraries(hypertune_${name} PRIVATE $<BUILD_INTERFACE:hypertune_warnings>)
  endif()
endforeach()
target_link_libraries(hypertune_library PRIVATE $<BUILD_INTERFACE:hypertune_warnings>)
if(TARGET hypertune_transfer)
  # With it, checkpoints are copied by content-defined chunks; without it they are copied whole.
  target_link_libraries(hypertune_remote PRIVATE hypertune_transfer)
  target_compile_definitions(hypertune_remote PRIVATE HYPERTUNE_REMOTE_TRANSFER)
endif()

# Large files are not put into one batch, so that several cores have something to do.
hypertune_merge_library(hypertune_library 6)
foreach(target_and_count net=6 remote=9 k8s=16 slurm=5 train=6 yaml=3 ssh=4 machines=9 cluster=5 transfer=10 arrow=2 mlflow=4 import=4 dashboard=11 serve=5)
  string(REGEX MATCH "(.*)=(.*)" _ ${target_and_count})
  hypertune_merge_library(hypertune_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})   # if the target exists
endforeach()
