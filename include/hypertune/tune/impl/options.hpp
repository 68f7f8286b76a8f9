// Options: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/tune/options.hpp>

#include <vector>

namespace hypertune::inline v0 {

AnyScheduler detail::default_scheduler() { return Fifo{}; }

AnyExecutor detail::default_executor() { return threads(); }

std::vector<Objective> objectives_of(const Options& options) {
  if (!options.objectives.empty()) return options.objectives;
  if (options.metric->empty()) fail(Errc::usage, "no metric to tune: set .metric (or .objectives)");
  return {{options.metric, options.mode}};
}

}  // namespace hypertune::inline v0
