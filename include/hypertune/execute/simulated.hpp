// SimulatedExecutor: simulates thousands of workers in virtual time. Deterministic to the bit.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/execute/simulation_options.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Runs the program's steps in the caller's thread, one event after the other, each at its virtual time. At the same
/// time, outages come first, then events of trials.
///
/// The workers are assumed to outlive the driver: an experiment that was killed and is resumed goes on at the virtual
/// time of its last record, and makes the same decisions as without the interruption. The state of a program without
/// checkpoints is rebuilt by running its steps again, without reports.
class SimulatedExecutor : public detail::ExecutorHandle {
 public:
  static constexpr bool is_simulated = true;
  static constexpr bool runs_gangs = true;
  static constexpr const char& part = include_hypertune_src_analysis_hpp_or_link_hypertune_hypertune;

  /// Throws an Error of kind `usage` that names an invalid option.
  explicit SimulatedExecutor(SimulationOptions options);
  /// To be called after start(). Outages that ended before `now` are not repeated. Those that still last or end exactly
  /// at `now` are reported again, because the record may end in the middle of them.
  void restore_clock(Seconds now);
  Seconds startup() const;
  std::string name() const { return "simulated"; }

 private:
  class State;
};

inline SimulatedExecutor simulated(SimulationOptions options = {}) { return SimulatedExecutor(std::move(options)); }

}  // namespace hypertune::inline v0
