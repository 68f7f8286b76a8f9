// What a ProcessExecutor may use, and how patient it is.
#pragma once

#include <hypertune/error.hpp>
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

  void validate() const {
    if (workers < 0) fail(Errc::usage, "process option 'workers' is {}, but must be 0 or more", workers);
    if (!(cpus >= 0)) fail(Errc::usage, "process option 'cpus' is {}, but must be 0 or more", cpus);
    if (!(grace >= 0 && grace < 1e6)) fail(Errc::usage, "process option 'grace' is {}, but must be 0 or more", grace);
    if (!(memory_interval > 0))
      fail(Errc::usage, "process option 'memory_interval' is {}, but must be more than 0", memory_interval);
    if (!(gpu_wait >= 0 && gpu_wait < 1e6))
      fail(Errc::usage, "process option 'gpu_wait' is {}, but must be 0 or more", gpu_wait);
  }
};

}  // namespace hypertune::inline v0::local
