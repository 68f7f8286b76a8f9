// A command that runs over a connection.
#pragma once

#include "master.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/ssh/run_result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::ssh::detail {

/// What belongs to the connection is thrown, the command's own end is not.
RunResult exchange(Master& master, const std::vector<std::string>& local, process::RunOptions options);

/// The arguments that run a script; its messages can be told apart whatever language the account speaks.
std::vector<std::string> script_arguments(std::string_view text, const std::vector<std::string>& arguments);

}  // namespace hypertune::inline v0::ssh::detail
