// When checkpoints are saved, and how many are kept.
#pragma once

#include <hypertune/error.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

/// Meant for designated initialisers: `{.every = 5, .keep = 2}`.
struct CheckpointPolicy {
  int every = 0;                ///< save whenever this many further steps are done; 0: no such saves
  int keep = 2;                 ///< the newest ones of each trial that are kept; 0 with keep_best = 0: all are kept
  int keep_best = 0;            ///< in addition, this many of each trial with the best scores at the time of saving
  std::uint64_t max_bytes = 0;  ///< limit for all checkpoints of the experiment together; 0: no limit
  /// With `every`: also save when the schedule or a stop condition ends a trial. A trial that is interrupted is always
  /// saved, and with `every` also a trial that is paused.
  bool at_end = true;

  /// Whether a trial that has done `steps` steps must be saved now.
  bool due(int steps) const { return every > 0 && steps > 0 && steps % every == 0; }

  /// Throws an Error of kind `usage` that names the invalid option.
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
