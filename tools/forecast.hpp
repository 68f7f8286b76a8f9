// Forecasts how far the trials of a sweep will train, by simulating its scheduler.
#pragma once

#include <hypertune/config/sweep_options.hpp>

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

/// How many trials there are until the searcher has tried all configurations; nullopt: it comes to no end, or that is
/// not known.
std::optional<std::int64_t> trials_until_end(const Sweep& sweep);

/// Whether each trial makes one report, when its command has ended: no schedule can stop it earlier.
bool makes_one_report(const Sweep& sweep);

/// Simulates the sweep: its scheduler, on `parallel` workers, with learning curves whose order does not change. nullopt
/// if nothing limits the steps or the number of trials, or if the scheduler depends on time. `steps`: the value of
/// `stop.steps`, 0 if there is none.
std::optional<Forecast> forecast(const Sweep& sweep, int parallel, int steps);

}  // namespace hypertune::inline v0::command
