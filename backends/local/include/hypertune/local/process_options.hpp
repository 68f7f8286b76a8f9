// What a ProcessExecutor may use, and how patient it is.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0::local {

/// Meant for designated initialisers: `{.workers = 4}`.
struct ProcessOptions {
  int workers = 0;                            ///< trials of one cpu at once; 0: as many as there are cores
  double cpus = 0;                            ///< what trials may ask for in all; 0: `workers`, or this machine's cores
  double gpus = -1;                           ///< devices that trials may ask for; negative: those that are found
  std::uint64_t memory = 0;                   ///< bytes that trials may ask for in all; 0: what this machine has
  std::map<std::string, double> custom = {};  ///< further resources by name
  bool pin = true;                            ///< bind each trial to the cores of its slot
  Seconds grace = 5;            ///< seconds that a trial has to heed a Stop (or SIGTERM) before it is ended by force
  std::size_t max_parked = 64;  ///< paused trials that stay in memory; further ones that can save are ended instead
  /// Memory limits are kept by the kernel where this program may make cgroups (v2) of its own; else the trials that
  /// have one are looked at.
  Seconds memory_interval = 0.1;  ///< polling interval, in seconds
  /// Seconds that a trial waits at most, after another one has left its GPU, for the memory there to be free again; 0:
  /// not.
  Seconds gpu_wait = 30;

  void validate() const;
};

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/process_options.hpp>
#endif
