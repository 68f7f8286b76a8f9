// what_if(): replays the recorded curves of an experiment under another schedule or with another number of workers.
#pragma once

#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/tune/curve_beyond.hpp>
#include <hypertune/tune/detail/recorded_curves.hpp>

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace hypertune::inline v0 {

/// The order in which trials are started.
enum class TrialOrder : std::uint8_t {
  recorded,  ///< by number
  shuffled,  ///< in a random order given by `seed`
};

/// What is to be different in the replay.
struct WhatIf {
  AnyScheduler schedule;
  int workers = 0;  ///< concurrent trials; 0: as many as ran at the same time in the record
  TrialOrder order = TrialOrder::recorded;
  std::uint64_t seed = 0;
  std::stop_token stop = {};  ///< may be stopped from any thread: what_if() then throws an Error of kind `experiment`
};

/// The result of one replay.
struct PlayedAgain {
  std::size_t trials = 0;  ///< trials that reported
  std::int64_t steps = 0;  ///< steps of all trials together
  Seconds elapsed = 0;     ///< seconds until the end
  Seconds busy = 0;        ///< duration of all steps together, from report to report or end
  std::vector<Improvement> improvements = {};
  std::size_t unknown_trials = 0;     ///< trials that trained beyond the end of their record …
  std::int64_t unknown_steps = 0;     ///< … and the number of these steps
  std::int64_t uncompared_steps = 0;  ///< of these, those that fewer than 5 others reached: no change there
};

/// The results under each assumption of Beyond. If no trial went beyond its record, the three are equal.
struct WhatIfResult {
  int workers = 0;
  PlayedAgain stands_still, usual, best;
  bool exact() const { return stands_still.unknown_steps == 0 && usual.unknown_steps == 0 && best.unknown_steps == 0; }
};

/// Replays the curves on the simulated executor: each trial reports the recorded values after the recorded times. The
/// recorded configurations are proposed, in `order`. (A searcher that learns would have proposed others under another
/// schedule.) Starting an attempt takes the recorded median. Each trial has one worker, however many it had.
///
/// Beyond the end of a curve that was cut, the objectives change as Beyond assumes; bounded metrics keep their last
/// value. If all recorded values of an objective are between 0 and 1, the assumed values are limited to that range. At
/// steps that no trial has reached the values stay the same.
///
/// Deterministic. Errors: `usage` for a population-based scheduler, as the effect of its exchanges was never recorded,
/// and for a negative number of workers; `io` if no temporary folder can be made.
WhatIfResult what_if(const RecordedCurves& curves, const WhatIf& change);

}  // namespace hypertune::inline v0
