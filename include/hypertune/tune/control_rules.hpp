// The rules by which an experiment is run, and what a decision brings about.
#pragma once

#include <hypertune/checkpoint/policy.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/policies.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// What one call to the Controller brought about, in order: first the records are appended, then the commands go out.
struct Outcome {
  std::vector<record::Any> records;
  std::vector<Command> commands;
  std::vector<std::string> notices;  ///< lines for the user
  std::vector<TrialId> held;         ///< launched on hosts that are away: the commands follow when these are back
  bool sooner = false;               ///< tick() is to be called before what next_give_up() has said
  void clear() {
    sooner = false;
    records.clear();
    commands.clear();
    held.clear();
    notices.clear();
  }
};

/// The rules by which a Controller runs an experiment.
struct ControlRules {
  std::int64_t samples = 0;  ///< trials to create beside the known ones; 0: until the searcher is exhausted
  std::uint64_t seed = 0;
  int concurrency = 0;                                     ///< trials that run at once; 0: as many as there is room for
  std::function<Resources(const Params&)> resources = {};  ///< what a trial needs, or each of its workers
  bool uniform_resources = true;                           ///< resources() is the same for every configuration
  Workers workers = {};                                    ///< of each trial
  std::function<int(const RunningGroup&)> resize = {};     ///< Options::resize
  FailurePolicy failures = {};
  CheckpointPolicy checkpoint = {};
  Seconds startup = 0;                 ///< of workers, where it is known beforehand: AnyExecutor::startup()
  std::vector<Point> start_with = {};  ///< points to try first
  bool manual = false;                 ///< trials start by ask() alone (ask/tell), never by themselves
  /// Decide as if no host were ever lost: what one had keeps its place, and trials without room elsewhere wait for it.
  bool ordered = false;
  Seconds host_patience = 600;  ///< … for so long at most
  Seconds loss_patience = 0;    ///< for which a lost worker of a trial waits for others that are lost with it
  /// Each change of a trial's workers, and each failure that is tried on another host first, is said: not of a
  /// simulation, which makes many.
  bool tell_changes = false;
  bool metric_given = true;  ///< the objective was named, not left at its default
};

}  // namespace hypertune::inline v0
