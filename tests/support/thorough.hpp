#pragma once

#include <cstdlib>

namespace hypertune::inline v0::test {

/// Whether a test with the tag [thorough] tries all of its cases, not only some of them: the tests labelled `long` set
/// this variable.
inline bool thorough() { return std::getenv("HYPERTUNE_TEST_THOROUGH") != nullptr; }

}  // namespace hypertune::inline v0::test
