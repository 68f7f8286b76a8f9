// How far the trials of a sweep will train, by its own scheduler.
#pragma once

#include <hypertune/config/sweep_spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

struct Forecast {
  /// Steps at which trials end, and how many trials train at least so long: by steps, the first one is 1.
  std::vector<std::pair<int, std::int64_t>> reached;
  std::int64_t trials = 0, steps = 0;  ///< in all
  bool scaled = false;                 ///< of a part of the trials, and multiplied
};

/// Plays the sweep with the simulated executor: its scheduler, on `parallel` workers, with learning curves whose order
/// does not change. nullopt where nothing bounds the steps or the number of trials, or where the scheduler goes by
/// time. `steps`: what `stop.steps` says, 0 for nothing.
std::optional<Forecast> forecast(const Sweep& sweep, int parallel, int steps);

}  // namespace hypertune::inline v0::command
