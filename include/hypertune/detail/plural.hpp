// plural: the ending of a noun after a number.
#pragma once

#include <cstdint>

namespace hypertune::inline v0::detail {

/// The ending of a noun of which there are `count`: "1 trial", "2 trials".
constexpr const char* plural(std::int64_t count) { return count == 1 ? "" : "s"; }

}  // namespace hypertune::inline v0::detail
