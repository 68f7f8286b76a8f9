// Commands of CLUSTER.yaml on a machine.
#pragma once

#include <hypertune/remote/host_shell.hpp>

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Runs them one after the other, each in a login shell, until one fails: an Error that names it with its number in
/// `title` and its last lines. What they say goes to `log`. No process list shows them: they come by standard input,
/// and what they have started ends when nobody waits for it any more; in a pod, when it is interrupted here, or when
/// the next one begins. `folder`: of the cluster, on the machine.
void run_commands(const remote::HostShell& shell, const std::string& folder, const std::string& title,
                  const std::vector<std::string>& commands, const std::function<void(std::string_view)>& log,
                  const std::stop_token& stop, double timeout = 3600);

}  // namespace hypertune::inline v0::cluster
