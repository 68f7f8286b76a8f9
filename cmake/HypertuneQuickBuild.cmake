# HYPERTUNE_QUICK_BUILD: for building everything once, as scripts/test does on a fresh machine. Most of the time goes
# into parsing the same headers and instantiating the same templates in each file, so several files are compiled as one,
# and linked by mold if it is installed. After a change more has to be compiled again: leave it off during development.
option(HYPERTUNE_QUICK_BUILD "Compile several files as one: quicker in all, slower after a change" OFF)

set(hypertune_merge_script ${CMAKE_CURRENT_LIST_DIR}/HypertuneMergeSources.cmake)
set(hypertune_merged_size 110000)   # tests with this many bytes take about 30 s and 2 GiB together

if(HYPERTUNE_QUICK_BUILD)
  # The warning is about a field whose type is from an anonymous namespace in an included file. Merged files are
  # included.
  add_compile_options($<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>)
  # By default g++ collects garbage again and again once it uses 128 MiB: a tenth of its time.
  add_compile_options("$<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:SHELL:--param ggc-min-heapsize=1000000>")
  find_program(HYPERTUNE_MOLD mold)
  mark_as_advanced(HYPERTUNE_MOLD)
  if(HYPERTUNE_MOLD)
    # Without separate-code, mold 1.10 (Debian 12) may place a thread-local section a few bytes before the page where
    # the RELRO data begins. Such a program does not start: "cannot apply additional memory protection".
    add_link_options(-fuse-ld=mold LINKER:-z,separate-code)
  endif()
endif()

# hypertune_merge_library(TARGET COUNT): compiles its files in batches of COUNT. Their names must not collide.
function(hypertune_merge_library target count)
  if(HYPERTUNE_QUICK_BUILD AND TARGET ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

# hypertune_test_sources(TARGET FILES...): adds the tests, merged in a quick build. There each is in a namespace of its
# own, because every test has its own `Config`. A test that a namespace would change (macros, extern "C", named
# namespaces) is compiled alone.
function(hypertune_test_sources target)
  if(NOT HYPERTUNE_QUICK_BUILD)
    target_sources(${target} PRIVATE ${ARGN})
    return()
  endif()
  set(batch)
  set(sum 0)
  set(number 0)
  foreach(file ${ARGN})
    file(STRINGS ${file} apart REGEX "^(#define|#undef|#pragma|extern|namespace [a-z0-9_: ]+ {)")
    if(apart)
      target_sources(${target} PRIVATE ${file})
      continue()
    endif()
    file(SIZE ${file} size)
    math(EXPR sum "${sum} + ${size}")
    if(batch AND sum GREATER hypertune_merged_size)
      hypertune_merge_tests(${target} ${number} ${batch})
      math(EXPR number "${number} + 1")
      set(batch)
      set(sum ${size})
    endif()
    list(APPEND batch ${file})
  endforeach()
  if(batch)
    hypertune_merge_tests(${target} ${number} ${batch})
  endif()
endfunction()

function(hypertune_merge_tests target number)
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/${target}_${number}.cpp)
  add_custom_command(OUTPUT ${merged}
    COMMAND ${CMAKE_COMMAND} "-Dmerged=${merged}" "-Dfiles=${ARGN}" -P ${hypertune_merge_script}
    DEPENDS ${ARGN} ${hypertune_merge_script} COMMENT "" VERBATIM)
  target_sources(${target} PRIVATE ${merged})
endfunction()
