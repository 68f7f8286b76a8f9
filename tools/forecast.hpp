// Forecasts how far the trials of a sweep will train, by simulating its scheduler.
#pragma once

#include <hypertune/config/sweep_spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

struct Forecast {
  /// Steps at which trials end, and how many trials train at least that long; sorted by steps, the first step is 1.
  std::vector<std::pair<int, std::int64_t>> reached;
  std::int64_t trials = 0, steps = 0;  ///< totals
  bool scaled = false;                 ///< simulated with a part of the trials, and scaled up
};

/// Simulates the sweep: its scheduler, on `parallel` workers, with learning curves whose order does not change. nullopt
/// if nothing limits the steps or the number of trials, or if the scheduler depends on time. `steps`: the value of
/// `stop.steps`, 0 if there is none.
std::optional<Forecast> forecast(const Sweep& sweep, int parallel, int steps);

}  // namespace hypertune::inline v0::command
