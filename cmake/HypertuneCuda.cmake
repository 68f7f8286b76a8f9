# CUDA, if it is found; without it, the rest is built. nvcc is found by PATH, CUDACXX or CMAKE_CUDA_COMPILER;
# `scripts/setup-cuda DIR` downloads a toolkit. NCCL_ROOT is where NCCL is, if it is not in the toolkit.
option(HYPERTUNE_CUDA "Build what needs CUDA where a toolkit is found" ON)

if(HYPERTUNE_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)   # or all-major, native, "80;90": see the CMake manual
    endif()
    enable_language(CUDA)
  endif()
  hypertune_find_optional(CUDAToolkit TARGETS CUDA::cudart_static CUDA::cublas)
  find_path(HYPERTUNE_CUBLAS_INCLUDE cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(HYPERTUNE_CUBLAS_INCLUDE)
endif()
if(NOT CUDAToolkit_FOUND OR NOT HYPERTUNE_CUBLAS_INCLUDE)   # nvcc may be installed alone
  return()
endif()

# The runtime and cuBLAS for host code, which needs no nvcc. Static, like the runtime that nvcc links: two copies would
# conflict.
add_library(hypertune_cuda INTERFACE)
target_link_libraries(hypertune_cuda INTERFACE CUDA::cudart_static CUDA::cublas)
# CMake 3.25 does not know CUDA20.
target_compile_options(hypertune_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
# CMake takes the toolkit's folder for an implicit library folder, and sets no rpath for it.
target_link_options(hypertune_cuda INTERFACE LINKER:-rpath,${CUDAToolkit_LIBRARY_DIR})

find_path(HYPERTUNE_NCCL_INCLUDE nccl.h HINTS ${NCCL_ROOT} ENV NCCL_ROOT ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(HYPERTUNE_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_ROOT} ENV NCCL_ROOT ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64)
mark_as_advanced(HYPERTUNE_NCCL_INCLUDE HYPERTUNE_NCCL_LIBRARY)
if(NOT HYPERTUNE_NCCL_INCLUDE OR NOT HYPERTUNE_NCCL_LIBRARY)
  message(STATUS "hypertune: CUDA is found, but not NCCL (NCCL_ROOT): there is no hypertune::train_cuda")
  return()
endif()

# Collectives over NCCL: <hypertune/train/nccl_communicator.hpp>.
file(GLOB hypertune_train_cuda_sources CONFIGURE_DEPENDS ${hypertune_root}/src/train_cuda/*.cpp)
add_library(hypertune_train_cuda STATIC EXCLUDE_FROM_ALL ${hypertune_train_cuda_sources})
add_library(hypertune::train_cuda ALIAS hypertune_train_cuda)
set_target_properties(hypertune_train_cuda PROPERTIES EXPORT_NAME train_cuda POSITION_INDEPENDENT_CODE ON)
target_include_directories(hypertune_train_cuda SYSTEM PRIVATE ${HYPERTUNE_NCCL_INCLUDE})
target_link_libraries(hypertune_train_cuda PUBLIC hypertune_library PRIVATE CUDA::cudart_static
  $<BUILD_INTERFACE:hypertune_warnings> $<BUILD_INTERFACE:${HYPERTUNE_NCCL_LIBRARY}> $<INSTALL_INTERFACE:nccl>)
get_filename_component(hypertune_nccl_folder ${HYPERTUNE_NCCL_LIBRARY} DIRECTORY)
target_link_options(hypertune_train_cuda INTERFACE $<BUILD_INTERFACE:LINKER:-rpath,${hypertune_nccl_folder}>)
hypertune_merge_library(hypertune_train_cuda 5)
