// Names of files that a trial's folder may have beside hypertune's own.
#pragma once

#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Why a file with this path below the trial's folder cannot be made from a template; empty if it can. The path must
/// stay within the folder, and must not be that of a file that hypertune writes there.
std::string refused_trial_file(std::string_view path);

}  // namespace hypertune::inline v0::detail
