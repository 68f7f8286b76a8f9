// The definitions of hypertune. A program that does not link the library hypertune::hypertune includes this in one of its
// files: the one with main(), or one of its own, which then compiles only once.
//
// A program that needs less of them compiles faster: `src/core.hpp`, and of the other parts those whose things it names, in
// the same file or in others. What it names without its part is said by the linker.
#pragma once

#include <hypertune/src/analysis.hpp>
#include <hypertune/src/core.hpp>
#include <hypertune/src/display.hpp>
#include <hypertune/src/groups.hpp>
#include <hypertune/src/models.hpp>
#include <hypertune/src/schedulers.hpp>
#if __has_include(<hypertune/local/src.hpp>)  // backends/local is on the path
#include <hypertune/local/src.hpp>
#endif
