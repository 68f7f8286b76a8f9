// SimulationOptions: the options of a SimulatedExecutor.
#pragma once

#include <hypertune/detail/old_name.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace hypertune::inline v0 {

/// An outage of a worker, perhaps temporary.
struct Outage {
  int worker = 0;     ///< its number, from 0
  Seconds at = 0;     ///< in virtual seconds, as is `until`
  Seconds until = 0;  ///< 0: for good
};

/// The behaviour of the simulated machines. Every random number is a function of the seed and its purpose. Numbers are
/// 0 or more, probabilities at most 1; SimulatedExecutor checks them.
struct SimulationOptions {
  int pool = 4;                       ///< the number of workers: 1 or more
  detail::OldName<int> workers = {};  ///< now pool
  Resources worker = {};              ///< resources of each worker
  /// How long step number `step` (from 0) of a trial takes on a worker of speed 1, in virtual seconds.
  std::function<Seconds(const Params&, int step)> step_seconds = {};  ///< empty: 1 s
  /// The speed of a group relative to one worker; empty: proportional to the number of workers. A group waits for its
  /// slowest worker.
  std::function<double(int workers)> speedup = {};
  /// Seconds before the first step of each attempt, and after a pause or a loss of workers. Workers that join an
  /// attempt take as long to start, while the others train.
  Seconds startup_seconds = 0;
  double speed_spread = 0;          ///< standard deviation of the logarithm of a worker's speed
  double straggle_probability = 0;  ///< probability that a step takes …
  double straggle_factor = 10;      ///< … this many times as long
  double failure_probability = 0;   ///< probability that a step ends in a failure of the worker
  std::vector<Outage> outages = {};
  std::uint64_t seed = 0;
};

}  // namespace hypertune::inline v0
