# hypertune plot: renders the page's charts as SVG without a browser. QuickJS is C and only used by the command;
# consumers of the package need no C compiler.
if(NOT TARGET hypertune_dashboard)
  return()
endif()
include(CheckLanguage)
check_language(C)
if(NOT CMAKE_C_COMPILER)
  message(STATUS "hypertune: without a C compiler there is no hypertune plot")
  return()
endif()
enable_language(C)

set(hypertune_quickjs ${PROJECT_SOURCE_DIR}/src/plot/vendor/quickjs)
add_library(hypertune_quickjs STATIC EXCLUDE_FROM_ALL ${hypertune_quickjs}/quickjs.c ${hypertune_quickjs}/libregexp.c
  ${hypertune_quickjs}/libunicode.c ${hypertune_quickjs}/dtoa.c)
# Third-party code: its warnings are ignored. Its own README says why -O1.
target_compile_options(hypertune_quickjs PRIVATE -w -O1 -fwrapv)
target_compile_definitions(hypertune_quickjs PRIVATE _GNU_SOURCE NDEBUG)
set_target_properties(hypertune_quickjs PROPERTIES C_STANDARD 11 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
find_package(Threads REQUIRED)
target_link_libraries(hypertune_quickjs PUBLIC Threads::Threads m)

file(GLOB hypertune_plot_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plot/*.cpp)
add_library(hypertune_plot STATIC EXCLUDE_FROM_ALL ${hypertune_plot_sources})
target_include_directories(hypertune_plot PUBLIC ${PROJECT_SOURCE_DIR}/src/plot)
target_link_libraries(hypertune_plot PUBLIC hypertune_dashboard PRIVATE hypertune_quickjs $<BUILD_INTERFACE:hypertune_warnings>)
hypertune_merge_library(hypertune_plot 2)
