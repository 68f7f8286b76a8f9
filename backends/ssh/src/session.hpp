// A command that runs over a connection.
#pragma once

#include "master.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/run_result.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::ssh::detail {

/// What belongs to the connection is thrown, the command's own end is not.
remote::RunResult exchange(Master& master, const std::vector<std::string>& local, process::RunOptions options);

}  // namespace hypertune::inline v0::ssh::detail
