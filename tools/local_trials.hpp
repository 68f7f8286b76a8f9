// A sweep's trials on this machine: their program and their executor.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/execute/executor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// `here`: check that this machine can run the command.
std::shared_ptr<const Program> program_of(const Sweep& sweep, bool here = true);
/// A template of the sweep (trial.files): its text, or that of its file. Error of kind `input` if it cannot be read.
std::string template_text(const Sweep& sweep, const TrialFileOptions& file);
/// Configurations that trials may have: those of start_with, and some of the space.
std::vector<Params> some_configurations(const Sweep& sweep, int number);
/// The command of a configuration, as a trial would run it (trial 0, in a folder that is named DIRECTORY).
std::vector<std::string> arguments_of(const Sweep& sweep, const Params& params);
/// What the command and the templates name.
std::vector<std::string> names_used(const Sweep& sweep);
/// For each parameter that may be inactive and then leaves an option without a value (`--depth {depth}`): it, and the
/// option.
std::vector<std::pair<std::string, std::string>> options_left_alone(const Sweep& sweep);
AnyExecutor executor_of(const Sweep& sweep);

}  // namespace hypertune::inline v0::command
