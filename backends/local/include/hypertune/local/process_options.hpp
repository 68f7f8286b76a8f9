// The options of a ProcessExecutor: its resources and time limits.
#pragma once

#include <hypertune/detail/old_name.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0::local {

/// Meant for designated initialisers: `{.pool = 4}`.
struct ProcessOptions {
  int pool = 0;                                  ///< concurrent trials of one cpu; 0: as many as there are cores
  hypertune::detail::OldName<int> workers = {};  ///< now pool
  double cpus = 0;                               ///< cores for all trials together; 0: `pool`, or this machine's cores
  double gpus = -1;                              ///< GPUs for all trials together; negative: those that are found
  std::uint64_t memory = 0;                      ///< bytes for all trials together; 0: what this machine has
  std::map<std::string, double> custom = {};     ///< further resources by name
  bool pin = true;                               ///< bind each trial to the cores of its slots; its workers share them
  Seconds stop_grace = 5;  ///< seconds that a trial has to obey a Stop (or SIGTERM) before it is killed
  hypertune::detail::OldName<Seconds> grace = {};  ///< now stop_grace
  std::size_t max_parked = 64;  ///< paused trials that stay in memory; further ones are ended if they can save
  /// The kernel enforces memory limits if this program may create cgroups (v2). Otherwise the memory of trials with a
  /// limit is polled at this interval.
  Seconds memory_interval = 0.1;  ///< seconds
  /// How many seconds a trial waits at most, after another one has left its GPU, until the memory there is free again;
  /// 0: it does not wait.
  Seconds gpu_wait = 30;

  /// Throws an Error of kind `usage` if a value is invalid. Takes options by their old names.
  void validate();
};

}  // namespace hypertune::inline v0::local
