// The options of a ProcessExecutor: its resources and time limits.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0::local {

/// Meant for designated initialisers: `{.workers = 4}`.
struct ProcessOptions {
  int workers = 0;                            ///< concurrent trials of one cpu; 0: as many as there are cores
  double cpus = 0;                            ///< cores for all trials together; 0: `workers`, or this machine's cores
  double gpus = -1;                           ///< GPUs for all trials together; negative: those that are found
  std::uint64_t memory = 0;                   ///< bytes for all trials together; 0: what this machine has
  std::map<std::string, double> custom = {};  ///< further resources by name
  bool pin = true;                            ///< bind each trial to the cores of its slots; its workers share them
  Seconds grace = 5;            ///< seconds that a trial has to obey a Stop (or SIGTERM) before it is killed
  std::size_t max_parked = 64;  ///< paused trials that stay in memory; further ones are ended if they can save
  /// The kernel enforces memory limits if this program may create cgroups (v2). Otherwise the memory of trials with a
  /// limit is polled at this interval.
  Seconds memory_interval = 0.1;  ///< seconds
  /// How many seconds a trial waits at most, after another one has left its GPU, until the memory there is free again;
  /// 0: it does not wait.
  Seconds gpu_wait = 30;

  void validate() const;
};

}  // namespace hypertune::inline v0::local
