// ScriptedTrial: a trial as the ScriptedTuner knows it.
#pragma once

#include "executor_trials.hpp"

#include <hypertune/execute/allocation.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::test {

/// The answer to a report.
struct Answer {
  enum class Kind { proceed, pause, stop } kind = Kind::proceed;
  bool save = false;
  bool again = false;  ///< after a stop: another attempt, from the checkpoints there are
  int workers = 0;     ///< go on with so many, as far as there is room; 0: as it is
};

/// A trial as the tuner knows it, and what came of it.
struct ScriptedTrial {
  enum class Phase { pending, launched, running, waiting, pausing, stopping, paused, over };
  TrialId id = 0;
  Plan plan;
  Phase phase = Phase::pending;
  Attempt attempt = 0;
  bool parked = false, again = false, save_asked = false;
  int steps = 0;  ///< done
  std::optional<Allocation> allocation;
  std::vector<Slot> leaving;  ///< slots that are free with the next generation
  std::uint32_t generation = 0;
  bool resizing = false;
  int parked_workers = 1;
  std::vector<CheckpointInfo> sealed;  ///< newest first
  std::vector<CheckpointInfo> lost;
  std::vector<int> promised;  ///< steps done at each save this attempt was asked for and went on
  std::vector<int> starts;    ///< next_step of each attempt
  std::vector<Report> reports;
  std::vector<Cause> causes;
  int pauses = 0, finished = 0, stopped = 0, resizes = 0, losses = 0;
  std::string story;  ///< one letter an event, for a person who looks for a mistake
};

}  // namespace hypertune::inline v0::test
