// When checkpoints are saved, and how many are kept.
#pragma once

#include <hypertune/error.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

/// Meant for designated initialisers: `{.every = 5, .keep = 2}`.
struct CheckpointPolicy {
  int every = 0;                ///< save each time that this many steps are done; 0: never by itself
  int keep = 2;                 ///< the newest ones kept of each trial; 0 with keep_best = 0: all are kept
  int keep_best = 0;            ///< besides, this many of each trial whose score at the save was best
  std::uint64_t max_bytes = 0;  ///< of the whole experiment's checkpoints together; 0: no limit
  /// With `every`: save as well when the schedule or a stop condition ends a trial. Whatever this says, a trial that is
  /// interrupted is saved, and with `every` one that is paused.
  bool at_end = true;

  /// Whether a trial that has done `steps` steps is to be saved now.
  bool due(int steps) const { return every > 0 && steps > 0 && steps % every == 0; }

  /// Throws an Error of kind `usage` that names the option that makes no sense.
  void validate() const {
    const auto require = [](const char* option, int value) {
      if (value < 0) fail(Errc::usage, "checkpoint option '{}' is {}, but must be 0 or more", option, value);
    };
    require("every", every);
    require("keep", keep);
    require("keep_best", keep_best);
  }

  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};

}  // namespace hypertune::inline v0
