// what_if(): the recorded curves of an experiment, played again under another schedule or with other workers.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/tune/curve_beyond.hpp>
#include <hypertune/tune/recorded_curves.hpp>

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace hypertune::inline v0 {

/// Which trials come first.
enum class TrialOrder : std::uint8_t {
  recorded,  ///< by number
  shuffled,  ///< as `seed` says
};

/// What is to be different.
struct WhatIf {
  AnyScheduler schedule;
  int workers = 0;  ///< trials at once; 0: as many as ran at once in the record
  TrialOrder order = TrialOrder::recorded;
  std::uint64_t seed = 0;
  std::stop_token stop = {};  ///< any thread: what_if() then ends with an Error of kind `experiment`
};

/// One way it could have gone.
struct PlayedAgain {
  std::size_t trials = 0;  ///< that reported
  std::int64_t steps = 0;  ///< that they did together
  Seconds elapsed = 0;     ///< until the end
  Seconds busy = 0;        ///< of all reports and ends together
  std::vector<Improvement> improvements = {};
  std::size_t unknown_trials = 0;     ///< that trained on beyond their record …
  std::int64_t unknown_steps = 0;     ///< … for so many steps together
  std::int64_t uncompared_steps = 0;  ///< of these, where fewer than five other trials went on: it stands still there
};

/// The same under each assumption of Beyond; where nothing beyond the record was asked for, the three are equal.
struct WhatIfResult {
  int workers = 0;
  PlayedAgain stands_still, usual, best;
  bool exact() const { return stands_still.unknown_steps == 0 && usual.unknown_steps == 0 && best.unknown_steps == 0; }
};

/// Plays the curves again by the simulated executor: each trial reports what it has reported, and takes as long. The
/// searcher proposes what was proposed, in `order`; one that learns would have proposed other configurations under
/// another schedule. Starting an attempt takes the recorded median. Each trial has one worker, whatever it had.
///
/// Beyond the end of a curve that was cut the gains of Beyond count for the objectives; bounded metrics stay as they
/// were. Where all recorded values of an objective are between 0 and 1, so is what is assumed. At steps that no trial
/// has reached nothing is known, and trials stand still.
///
/// The result is the same each time. Errors: `usage` for a scheduler of populations, as what its trials would do was
/// never recorded, and for workers below 0; `io` where there is no room for a temporary folder.
WhatIfResult what_if(const RecordedCurves& curves, const WhatIf& change);

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/what_if.hpp>
#endif
