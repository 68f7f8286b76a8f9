# hypertune plot: the page's charts as SVG, for the command alone.
if(NOT TARGET hypertune_dashboard)
  return()
endif()
file(GLOB hypertune_plot_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plot/*.cpp)
add_library(hypertune_plot STATIC EXCLUDE_FROM_ALL ${hypertune_plot_sources})
target_include_directories(hypertune_plot PUBLIC ${PROJECT_SOURCE_DIR}/src/plot)
target_link_libraries(hypertune_plot PUBLIC hypertune_dashboard PRIVATE hypertune_boost_json $<BUILD_INTERFACE:hypertune_warnings>)
hypertune_merge_library(hypertune_plot 2)
