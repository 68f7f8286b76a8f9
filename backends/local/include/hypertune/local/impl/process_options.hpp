// ProcessOptions: validation.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/process_options.hpp>

namespace hypertune::inline v0::local {

void ProcessOptions::validate() {
  workers.give_to(pool);
  grace.give_to(stop_grace);
  if (pool < 0) fail(Errc::usage, "process option 'pool' is {}, but must be 0 or more", pool);
  if (!(cpus >= 0)) fail(Errc::usage, "process option 'cpus' is {}, but must be 0 or more", cpus);
  if (!(stop_grace >= 0 && stop_grace < 1e6))
    fail(Errc::usage, "process option 'stop_grace' is {}, but must be 0 or more", stop_grace);
  if (!(memory_interval > 0))
    fail(Errc::usage, "process option 'memory_interval' is {}, but must be more than 0", memory_interval);
  if (!(gpu_wait >= 0 && gpu_wait < 1e6))
    fail(Errc::usage, "process option 'gpu_wait' is {}, but must be 0 or more", gpu_wait);
}

}  // namespace hypertune::inline v0::local
