// What a pod said last.
#pragma once

#include <hypertune/k8s/client.hpp>

#include <stop_token>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// The last lines of a text as one, for messages: at most 800 characters, control characters removed.
std::string end_of_text(std::string_view text);

/// The same of a container's log; empty where it cannot be had. Blocks for a few seconds at most.
std::string end_of_log(Client client, const std::string& pod, const std::string& container,
                       const std::stop_token& stop);

}  // namespace hypertune::inline v0::k8s
