// The options that a resumed experiment takes from its record.
#pragma once

#include <hypertune/space/search_space.hpp>
#include <hypertune/tune/options.hpp>

namespace hypertune::inline v0 {

/// With options.resume, and if there is a record: returns `options` with every Setting that was not given (name, metric
/// and mode or objectives, samples, seed) taken from the record. Otherwise returns `options`.
Options with_recorded(Options options, const SearchSpace& space);

}  // namespace hypertune::inline v0
