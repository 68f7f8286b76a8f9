#include "cluster_trials.hpp"

#include "cluster_support.hpp"
#include "remote_trials.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

ClusterExecutor cluster_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  ClusterSetup setup;
  setup.file = found_from(sweep, sweep.executor.ssh->cluster);
  setup.grow = sweep.executor.ssh->grow;
  // Use the name under which the cluster was brought up: `-n` is in no file.
  const char *name = std::getenv("HYPERTUNE_CLUSTER"), *of = std::getenv("HYPERTUNE_CLUSTER_FILE");
  std::error_code ignored;
  if (name != nullptr && of != nullptr && std::filesystem::equivalent(setup.file, of, ignored))
    setup.overrides.name = name;
  setup.remote = remote_setup_of(sweep, file, set);
  // A closed terminal ends the experiment like Ctrl-C. Only the experiment's own handler of SIGTERM can do that.
  setup.tick = [heard = interruptions()]() mutable {
    if (interruptions() == heard) return;
    heard = interruptions();
    ::kill(::getpid(), SIGTERM);
  };
  return ClusterExecutor(std::move(setup));
}

}  // namespace hypertune::inline v0::command
