// Policies of an experiment that are not algorithms: failures, known results.
#pragma once

#include <hypertune/space/params.hpp>
#include <hypertune/trial/report.hpp>

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

}  // namespace hypertune::inline v0
