// Running a command over a connection.
#pragma once

#include "master.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/run_result.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::ssh::detail {

/// Throws only for errors of the connection; the command's exit code is returned.
remote::RunResult exchange(Master& master, const std::vector<std::string>& local, process::RunOptions options);

}  // namespace hypertune::inline v0::ssh::detail
