// HostUse: what a host did for the experiment.
#pragma once

#include <cstdint>
#include <string>

namespace hypertune::inline v0 {

/// What one host has done. Times in seconds.
struct HostUse {
  std::string host;
  double present = 0;             ///< while the experiment could use it; 0 if the executor does not report this
  double busy = 0;                ///< sum over all attempts on it
  std::int64_t attempts = 0;      ///< started on it
  std::int64_t lost = 0;          ///< how often it was lost, or went away before its trials had ended
  std::string excluded_why = {};  ///< why no trial is started there any more; empty if it is in use
};

}  // namespace hypertune::inline v0
