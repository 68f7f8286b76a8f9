// Settings of an experiment that belong to no algorithm: failures, known results, running groups.
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

/// A configuration whose result is known already: it is recorded as a completed trial, and the searcher learns from it.
struct KnownResult {
  Params params;
  Metrics metrics;
  int steps = 1;  ///< steps of training behind the result
};

/// What Options::resize is told about a trial whose number of workers may change.
struct RunningGroup {
  TrialId trial = 0;
  int workers = 0;           ///< its present number of workers; 0: it is about to start
  int steps = 0;             ///< steps done
  Metrics metrics = {};      ///< metrics of its last report; empty if it is about to start
  Seconds time = 0;          ///< seconds that the experiment has run, earlier sessions included
  std::size_t running = 0;   ///< number of running trials, this one included
  bool others_wait = false;  ///< whether other trials wait for room, or would start if there were room
};

}  // namespace hypertune::inline v0
