// The definitions of hypertune. A program that does not link the library hypertune::hypertune includes this in one of its
// files: the one with main(), or one of its own, which then compiles only once.
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
