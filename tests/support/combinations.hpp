#pragma once

#include "executor_conformance.hpp"
#include "thorough.hpp"

namespace hypertune::inline v0::test {

/// Of an executor whose trials run in other processes: how a trial is written is that process's matter, how it is
/// answered the driver's, and neither sees the other.
inline Combinations combinations() { return thorough() ? Combinations::all : Combinations::each; }

}  // namespace hypertune::inline v0::test
