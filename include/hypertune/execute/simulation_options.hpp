// SimulationOptions: the machines of a SimulatedExecutor.
#pragma once

#include <hypertune/space/params.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace hypertune::inline v0 {

/// A worker that is lost and, perhaps, comes back.
struct Outage {
  int worker = 0;
  Seconds at = 0;
  Seconds until = 0;  ///< 0: for good
};

/// How the simulated machines behave. Every draw is a function of the seed and of what it is for.
struct SimulationOptions {
  int workers = 4;
  Resources worker = {};  ///< what each worker has
  /// How long step number `step` (from 0) of a trial takes on a worker of speed 1, in virtual seconds.
  std::function<Seconds(const Params&, int step)> step_seconds = {};  ///< empty: 1 s
  /// How many times as fast as one worker so many are together; empty: as many times. They wait for the slowest.
  std::function<double(int workers)> speedup = {};
  /// Before the first step of each attempt, and after a pause or a loss of workers. Those that join an attempt take as
  /// long, while the others train.
  Seconds startup_seconds = 0;
  double speed_spread = 0;          ///< standard deviation of the logarithm of a worker's speed
  double straggle_probability = 0;  ///< of each step, to take …
  double straggle_factor = 10;      ///< … so many times as long
  double failure_probability = 0;   ///< of each step, to end in the worker's failure instead
  std::vector<Outage> outages = {};
  std::uint64_t seed = 0;
};

}  // namespace hypertune::inline v0
