// A sweep's trials on other machines: how they get there, and how the command serves them there.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/ssh/executor.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// A path of the file: "~/x" is below the home folder; what is not where the command is called is looked for beside the
/// file.
std::filesystem::path found_from(const Sweep& sweep, const std::filesystem::path& path);

/// What is brought to hosts: these mounts, with their places here as found_from() has them, and a program that the
/// command names by its place here, which goes to the same place below the working folder; it is added to `programs`.
/// Error of kind `usage` for what is not there.
std::vector<FileMount> mounts_of(const Sweep& sweep, std::vector<FileMount> mounts,
                                 std::vector<std::filesystem::path>& programs);

/// How trials get to hosts, without the hosts. `file` and `set` as below.
ssh::SshSetup remote_setup_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

/// What the agents make the sweep's program of: the text of `file`, and `set`.
std::string sweep_description(const std::string& file, const std::vector<std::string>& set);

/// `file` and `set` are what the sweep was read from: the agents read it again.
AnyExecutor remote_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

/// On a host: the program of such a sweep.
std::shared_ptr<const Program> program_from_description(const std::string& description);

}  // namespace hypertune::inline v0::command
