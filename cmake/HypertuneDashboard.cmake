# hypertune::dashboard: the web page of experiments, over HTTP. Compiled, so that users do not include Beast. The page's
# files are compressed and embedded in the library by the assembler.
find_program(HYPERTUNE_GZIP gzip)
mark_as_advanced(HYPERTUNE_GZIP)
if(NOT HYPERTUNE_GZIP)
  message(STATUS "hypertune: without gzip there is no hypertune::dashboard")
  return()
endif()

set(hypertune_page ${hypertune_root}/src/dashboard/page)
file(GLOB_RECURSE hypertune_page_files CONFIGURE_DEPENDS RELATIVE ${hypertune_page}
  ${hypertune_page}/*.html ${hypertune_page}/*.css ${hypertune_page}/*.js ${hypertune_page}/*.svg ${hypertune_page}/*.png
  ${hypertune_page}/LICENSE* ${hypertune_page}/NOTICE*)
set(hypertune_page_out ${CMAKE_CURRENT_BINARY_DIR}/hypertune_page)
set(hypertune_page_types .html "text/html; charset=utf-8" .css "text/css; charset=utf-8" .js "text/javascript; charset=utf-8"
  .svg image/svg+xml .png image/png)
set(rows)
set(blobs)
set(packed)
set(number 0)
foreach(file IN LISTS hypertune_page_files)
  get_filename_component(extension ${file} LAST_EXT)
  list(FIND hypertune_page_types "${extension}" at)
  if(at LESS 0)
    set(type "text/plain; charset=utf-8")
  else()
    math(EXPR at "${at} + 1")
    list(GET hypertune_page_types ${at} type)
  endif()
  set(gzip ${hypertune_page_out}/${number}.gz)
  add_custom_command(OUTPUT ${gzip}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${hypertune_page_out}
    COMMAND ${HYPERTUNE_GZIP} -9nc ${hypertune_page}/${file} > ${gzip}
    DEPENDS ${hypertune_page}/${file} VERBATIM)
  list(APPEND packed ${gzip})
  string(APPEND blobs "HYPERTUNE_PAGE_FILE(${number}, \"${gzip}\")\n")
  string(APPEND rows "    {\"/${file}\", \"${type}\", blob(hypertune_page_${number}, hypertune_page_${number}_end)},\n")
  math(EXPR number "${number} + 1")
endforeach()
set(HYPERTUNE_PAGE_BLOBS "${blobs}")
set(HYPERTUNE_PAGE_ROWS "${rows}")
configure_file(${hypertune_root}/src/dashboard/page_files.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/hypertune_page_files.cpp @ONLY)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/hypertune_page_files.cpp PROPERTIES OBJECT_DEPENDS "${packed}"
  SKIP_UNITY_BUILD_INCLUSION ON)

file(GLOB hypertune_dashboard_sources CONFIGURE_DEPENDS ${hypertune_root}/src/dashboard/*.cpp)
add_library(hypertune_dashboard STATIC EXCLUDE_FROM_ALL ${hypertune_dashboard_sources}
  ${CMAKE_CURRENT_BINARY_DIR}/hypertune_page_files.cpp)
add_library(hypertune::dashboard ALIAS hypertune_dashboard)
set_target_properties(hypertune_dashboard PROPERTIES EXPORT_NAME dashboard POSITION_INDEPENDENT_CODE ON)
target_include_directories(hypertune_dashboard PRIVATE ${hypertune_root}/src ${hypertune_root}/src/dashboard)
target_link_libraries(hypertune_dashboard PUBLIC hypertune_library PRIVATE hypertune_net hypertune_boost_json)
if(OpenSSL_FOUND)
  target_compile_definitions(hypertune_dashboard PRIVATE HYPERTUNE_DASHBOARD_TLS)
endif()
