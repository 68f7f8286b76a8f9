// The commands on CLUSTER.yaml: up, down, exec, attach, submit, rsync-up, rsync-down, forward and others.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace hypertune::inline v0::command {

/// Adds the commands; the one on the command line sets `chosen`.
void add_cluster_commands(CLI::App& app, std::function<int()>& chosen);

/// `status CLUSTER.yaml`.
int cluster_status(const std::string& file, const std::string& format, const std::string& name = {});

}  // namespace hypertune::inline v0::command
