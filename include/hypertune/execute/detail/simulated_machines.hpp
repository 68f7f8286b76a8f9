// SimulatedMachines: the speed of each simulated worker, and its failures.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/simulation_options.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Every random number is a function of the seed and its purpose, so that it does not depend on when or how often it is
/// computed.
class SimulatedMachines {
 public:
  /// Throws an Error of kind `usage` that names an invalid option.
  explicit SimulatedMachines(SimulationOptions options) : options_(std::move(options)) {
    options_.workers.give_to(options_.pool);
    require_sound();
    speeds_.assign(static_cast<std::size_t>(options_.pool), 1.0);
    if (options_.speed_spread > 0)
      for (int w = 0; w < options_.pool; ++w)
        speeds_[static_cast<std::size_t>(w)] =
            std::exp(options_.speed_spread * normal(derived_rng(options_.seed, {1, static_cast<std::uint64_t>(w)})));
  }

  const SimulationOptions& options() const { return options_; }
  std::vector<Host> hosts() const {
    std::vector<Host> hosts;
    hosts.reserve(static_cast<std::size_t>(options_.pool));
    for (int w = 0; w < options_.pool; ++w)
      hosts.push_back({.name = detail::format("worker-{}", w), .total = options_.worker});
    return hosts;
  }

  /// How a step ends.
  struct Outcome {
    Seconds after = 0;
    int failed = -1;  ///< the rank whose worker fails at that time; -1: the step succeeds
  };
  /// The outcome of step `step` of the attempt on these workers: it ends with the slowest worker or at the first
  /// failure.
  Outcome outcome(const Launch& launch, const Allocation& workers, int step) const {
    const Seconds duration = duration_of(launch, workers.workers(), step);
    Seconds slowest = 0, first_failure = std::numeric_limits<double>::infinity();
    int failing = 0;
    for (int rank = 0; rank < workers.workers(); ++rank) {
      Seconds own = duration * speeds_[static_cast<std::size_t>(workers[rank].host)];
      if (options_.straggle_probability > 0 || options_.failure_probability > 0) {
        Rng rng = random_of(launch, workers.generation, step, rank);
        if (uniform01(rng) < options_.straggle_probability) own *= options_.straggle_factor;
        if (uniform01(rng) < options_.failure_probability)
          if (const Seconds at = own * uniform01(rng); at < first_failure) {
            first_failure = at;
            failing = rank;
          }
      }
      slowest = std::max(slowest, own);
    }
    if (first_failure < slowest || first_failure == 0) return {first_failure, failing};
    return {slowest};
  }

 private:
  void require_sound() const {
    const SimulationOptions& o = options_;
    if (o.pool < 1) fail(Errc::usage, "a simulation needs at least one worker, not {}", o.pool);
    const auto within = [](const char* option, double value, double most, const char* bounds) {
      if (!(value >= 0 && value <= most))  // also false for NaN
        fail(Errc::usage, "simulation option '{}' is {}, but must be {}", option, value, bounds);
    };
    constexpr double finite = std::numeric_limits<double>::max();
    within("startup_seconds", o.startup_seconds, finite, "a finite number of 0 or more");
    within("speed_spread", o.speed_spread, finite, "a finite number of 0 or more");
    within("straggle_factor", o.straggle_factor, finite, "a finite number of 0 or more");
    within("straggle_probability", o.straggle_probability, 1, "from 0 to 1");
    within("failure_probability", o.failure_probability, 1, "from 0 to 1");
    for (const auto& outage : o.outages) {
      if (outage.worker < 0 || outage.worker >= o.pool)
        fail(Errc::usage, "an outage is of worker {}, but they count from 0 to {}", outage.worker, o.pool - 1);
      within("outage.at", outage.at, finite, "a finite number of 0 or more");
      within("outage.until", outage.until, finite, "a finite number of 0 or more (0: never)");
    }
  }

  static double normal(Rng rng) {  // Box-Muller transform: only one of the two values is needed
    const double u = uniform01(rng), v = uniform01(rng);
    return std::sqrt(-2 * std::log1p(-u)) * std::cos(6.283185307179586 * v);
  }

  Seconds duration_of(const Launch& launch, int workers, int step) const {
    const Seconds duration = options_.step_seconds ? options_.step_seconds(launch.params, step) : 1.0;
    if (!(duration >= 0 && std::isfinite(duration)))
      fail(Errc::usage, "step_seconds gave {} for step {} of trial {}: it must be a finite number of 0 or more",
           duration, step, launch.trial);
    if (workers == 1) return duration;
    const double speedup = options_.speedup ? options_.speedup(workers) : static_cast<double>(workers);
    if (!(speedup > 0 && std::isfinite(speedup)))
      fail(Errc::usage, "speedup gave {} for {} workers: it must be a finite number above 0", speedup, workers);
    return duration / speedup;
  }

  // A single worker keeps the numbers that it had before groups existed. Each generation has its own numbers, so that a
  // new generation does not repeat the failures of the one before.
  Rng random_of(const Launch& launch, std::uint32_t generation, int at_step, int rank) const {
    const auto trial = static_cast<std::uint64_t>(launch.trial), step = static_cast<std::uint64_t>(at_step);
    if (rank == 0 && generation == 0) return derived_rng(options_.seed, {2, trial, launch.attempt, step});
    return derived_rng(options_.seed, {3, trial, launch.attempt, step, generation, static_cast<std::uint64_t>(rank)});
  }

  SimulationOptions options_;
  std::vector<double> speeds_;
};

}  // namespace hypertune::inline v0
