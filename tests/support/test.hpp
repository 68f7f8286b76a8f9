// The one place that knows which Catch2 is installed.
#pragma once
#ifndef HYPERTUNE_CATCH2_MAJOR
#if __has_include(<catch2/catch_all.hpp>)
#define HYPERTUNE_CATCH2_MAJOR 3
#else
#define HYPERTUNE_CATCH2_MAJOR 2
#endif
#endif
#if HYPERTUNE_CATCH2_MAJOR >= 3
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>

#include <string>
using Catch::Matchers::Contains;
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
#endif
