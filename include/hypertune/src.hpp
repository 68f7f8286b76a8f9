// The definitions of the library hypertune::compiled, for programs that are built without CMake: one .cpp file of the
// program includes this, and all of them are compiled with -DHYPERTUNE_COMPILED.
#ifndef HYPERTUNE_COMPILED
#ifdef HYPERTUNE_INLINE
#error "compile all files with -DHYPERTUNE_COMPILED, the one that includes <hypertune/src.hpp> as well"
#endif
#define HYPERTUNE_COMPILED
#endif

#pragma once

#include <hypertune/src/checkpoint.hpp>
#include <hypertune/src/execute.hpp>
#include <hypertune/src/gaussian_process.hpp>
#include <hypertune/src/record.hpp>
#include <hypertune/src/schedule.hpp>
#include <hypertune/src/search.hpp>
#include <hypertune/src/show.hpp>
#include <hypertune/src/space.hpp>
#include <hypertune/src/trial.hpp>
#include <hypertune/src/tune.hpp>
#if __has_include(<hypertune/local/src.hpp>)  // backends/local is on the path
#include <hypertune/local/src.hpp>
#endif
