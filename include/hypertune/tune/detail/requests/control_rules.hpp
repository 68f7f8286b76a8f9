// The rules by which an experiment is run, and the outcome of a decision.
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

/// The outcome of one call to the Controller. The records must be appended before the commands are carried out.
struct Outcome {
  std::vector<record::Any> records;
  std::vector<Command> commands;
  std::vector<std::string> notices;  ///< lines for the user
  std::vector<TrialId> held;         ///< launched on hosts that are away: their commands follow when the hosts are back
  bool tick_earlier = false;         ///< tick() is due earlier than the last next_give_up() said
  void clear() {
    tick_earlier = false;
    records.clear();
    commands.clear();
    held.clear();
    notices.clear();
  }
};

/// The rules by which a Controller runs an experiment.
struct ControlRules {
  std::int64_t samples = 0;  ///< trials to create besides the known ones; 0: until the searcher is exhausted
  std::uint64_t seed = 0;
  int concurrency = 0;                                     ///< concurrent trials; 0: as many as there is room for
  std::function<Resources(const Params&)> resources = {};  ///< for a trial, or for each of its workers
  bool uniform_resources = true;                           ///< resources() is the same for every configuration
  Workers workers = {};                                    ///< of each trial
  std::function<int(const RunningGroup&)> resize = {};     ///< Options::resize
  FailurePolicy failures = {};
  CheckpointPolicy checkpoint = {};
  Seconds startup = 0;                 ///< startup time of workers, if known: AnyExecutor::startup()
  std::vector<Point> start_with = {};  ///< points to try first
  bool manual = false;                 ///< trials start by ask() alone (ask/tell), never by themselves
  /// Decide as if no host were ever lost: the trials of a lost host keep their turns, and wait for it if there is no
  /// room elsewhere.
  bool ordered = false;
  Seconds host_timeout = 600;  ///< … for at most this long
  Seconds loss_patience = 0;   ///< how long a loss of a worker waits for others that belong to it (GatheredLosses)
  /// Tell the user about each change of a trial's workers, about each failure that is tried on another host first, and
  /// that trials do not save though they were asked to.
  /// Off in simulations, which have many of these.
  bool tell_changes = false;
  bool metric_given = true;  ///< the user has named the objective
};

}  // namespace hypertune::inline v0
