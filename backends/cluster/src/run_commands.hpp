// Running the commands of CLUSTER.yaml on a machine.
#pragma once

#include <hypertune/remote/host_shell.hpp>

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Runs them one after the other, each in a login shell. Throws an Error if one fails, with `title`, the command's
/// number and its last lines. The output goes to `log`. The commands are passed on standard input, so process lists do
/// not show them. Processes that they start are killed if this call is interrupted or the connection lost; in a pod,
/// when it is interrupted here or when the next commands begin. `folder`: the cluster's folder on the machine.
void run_commands(const remote::HostShell& shell, const std::string& folder, const std::string& title,
                  const std::vector<std::string>& commands, const std::function<void(std::string_view)>& log,
                  const std::stop_token& stop, double timeout = 3600);

}  // namespace hypertune::inline v0::cluster
