// SimulatedExecutor: thousands of workers in virtual time, deterministic to the bit.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  Seconds startup_seconds = 0;      ///< before the first step of each attempt, and after a pause or a change of workers
  double speed_spread = 0;          ///< standard deviation of the logarithm of a worker's speed
  double straggle_probability = 0;  ///< of each step, to take …
  double straggle_factor = 10;      ///< … so many times as long
  double failure_probability = 0;   ///< of each step, to end in the worker's failure instead
  std::vector<Outage> outages = {};
  std::uint64_t seed = 0;
};

/// Runs the program's steps in the caller's thread, one event after the other, each at its virtual time. Events at the
/// same time come in the order of outages, then trials.
///
/// The workers are taken to outlive the driver: an experiment that was killed and is resumed goes on at the virtual
/// time of its last record and makes the decisions that it would have made. A program without checkpoints is brought to
/// where it was by running its steps again (no report comes of them).
class SimulatedExecutor {
 public:
  static constexpr bool is_simulated = true;
  static constexpr bool runs_gangs = true;

  /// Error of kind `usage` that names the option that makes no sense.
  explicit SimulatedExecutor(SimulationOptions options);
  SimulatedExecutor(SimulatedExecutor&&) noexcept;
  SimulatedExecutor& operator=(SimulatedExecutor&&) noexcept;
  ~SimulatedExecutor();

  std::vector<Host> hosts() const;
  Seconds now() const;
  /// After start(): what the record says has happened by `now` is not done again, but what stands at that very moment
  /// and the outages that still last are told once more, as the record may end in the middle of them.
  void restore_clock(Seconds now);
  std::string name() const { return "simulated"; }

  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();

 private:
  class State;
  std::unique_ptr<State> self_;
};

inline SimulatedExecutor simulated(SimulationOptions options = {}) { return SimulatedExecutor(std::move(options)); }

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/execute/impl/simulated.hpp>
#endif
