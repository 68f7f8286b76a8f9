// ProcessOptions: validation.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/process_options.hpp>

namespace hypertune::inline v0::local {

void ProcessOptions::validate() const {
  if (workers < 0) fail(Errc::usage, "process option 'workers' is {}, but must be 0 or more", workers);
  if (!(cpus >= 0)) fail(Errc::usage, "process option 'cpus' is {}, but must be 0 or more", cpus);
  if (!(grace >= 0 && grace < 1e6)) fail(Errc::usage, "process option 'grace' is {}, but must be 0 or more", grace);
  if (!(memory_interval > 0))
    fail(Errc::usage, "process option 'memory_interval' is {}, but must be more than 0", memory_interval);
  if (!(gpu_wait >= 0 && gpu_wait < 1e6))
    fail(Errc::usage, "process option 'gpu_wait' is {}, but must be 0 or more", gpu_wait);
}

}  // namespace hypertune::inline v0::local
