// What programs of this machine print, and which line of it tells people something.
#pragma once

#include <hypertune/process/subprocess.hpp>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// What a program prints that must end with this one; nullopt if it cannot be started.
std::optional<process::Collected> printed_by(const std::vector<std::string>& arguments, double timeout,
                                             const std::stop_token& stop = {});

/// The last line that says something, for messages; at most 300 characters, control characters removed.
std::string last_line(std::string_view messages);

}  // namespace hypertune::inline v0::remote::detail
