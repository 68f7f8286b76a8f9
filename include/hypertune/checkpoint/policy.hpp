// When checkpoints are saved, and how many are kept.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/option.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

/// Meant for designated initialisers: `{.every = 5, .keep = 2}`.
struct CheckpointPolicy {
  static constexpr const char* type = "checkpoint";
  /// A trial is saved when the number of steps that it has done is a multiple of this, when the schedule pauses it, and
  /// after each step with the best value of all trials so far. 0: none of these. In any case, trials are saved that are
  /// interrupted, that the user pauses, or that have to leave their host, at their next report, and trials of a
  /// population (Scheduler: `exploits`) when they are paused.
  int every = 0;
  int keep = 2;       ///< of each trial, the newest; 0 with keep_best = 0: all are kept
  int keep_best = 0;  ///< of each trial, in addition, those with the best value of the last report before them
  /// of all checkpoints of the experiment together; 0: no limit. What is in use, the newest of a trial that has not
  /// ended, and the best are kept beyond it.
  std::uint64_t max_bytes = 0;
  /// With `every`: a trial that the schedule, a stop condition or the user ends is saved first. A trial that ends by
  /// itself is not.
  bool at_end = true;

  static void describe(auto& self, auto&& option) {
    option("every", self.every, at_least(0), "save after this many steps (C++ programs); 0: not by steps");
    option("keep", self.keep, at_least(0),
           "how many of the newest are kept of each trial; with `keep_best` 0 as well: all");
    option("keep_best", self.keep_best, at_least(0), "in addition, this many of each trial with the best values");
    option("max_bytes", self.max_bytes, at_least(0).in(Bounds::Unit::bytes).without_default(),
           "limit for all checkpoints of the experiment together");
    option("at_end", self.at_end, "with `every`: save as well when a trial is ended by the schedule or a condition");
  }

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
