// Reads the end of a pod's log.
#pragma once

#include <hypertune/k8s/client.hpp>

#include <stop_token>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// The last lines of a text as one line, for messages: at most 800 characters, without control characters.
std::string end_of_text(std::string_view text);

/// The same for a container's log; empty if it cannot be read. Blocks for a few seconds at most.
std::string end_of_log(Client client, const std::string& pod, const std::string& container,
                       const std::stop_token& stop);

}  // namespace hypertune::inline v0::k8s
