// Policies of an experiment that are not algorithms: failures, known results.
#pragma once

#include <hypertune/space/params.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>

namespace hypertune::inline v0 {

/// What to do when attempts fail.
struct FailurePolicy {
  int max = 0;         ///< how often a trial is tried again, from its last checkpoint; preemptions do not count
  int max_trials = 0;  ///< the experiment ends when more trials than this have failed for good; 0: no limit
};

/// A configuration whose result is known already: it is recorded as a completed trial and teaches the searcher.
struct KnownResult {
  Params params;
  Metrics metrics;
  int steps = 1;  ///< steps of training behind the result
};

/// What Options::resize is told of a trial whose number of workers may change.
struct RunningGroup {
  TrialId trial = 0;
  int workers = 0;           ///< that it has; 0: it is about to start
  int steps = 0;             ///< that are done
  Metrics metrics = {};      ///< of its last report; empty where it is about to start
  Seconds time = 0;          ///< since the experiment began, earlier runs of it included
  std::size_t running = 0;   ///< trials that run, this one included
  bool others_wait = false;  ///< for room, or would be started where there is some
};

}  // namespace hypertune::inline v0
