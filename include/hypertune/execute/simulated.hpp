// SimulatedExecutor: thousands of workers in virtual time, deterministic to the bit.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/simulation_options.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

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
  Seconds startup() const;
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
