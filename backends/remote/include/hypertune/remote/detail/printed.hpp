// Running a local program for its output, and selecting the line for a message.
#pragma once

#include <hypertune/process/subprocess.hpp>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// Runs a program, which ends with this process at the latest, and returns its output; nullopt if it cannot be started.
std::optional<process::Collected> printed_by(const std::vector<std::string>& arguments, double timeout,
                                             const std::stop_token& stop = {});

/// The last informative line, for messages: no decoration, no hint at --help. At most 300 characters, without control
/// characters.
std::string last_line(std::string_view messages);

}  // namespace hypertune::inline v0::remote::detail
