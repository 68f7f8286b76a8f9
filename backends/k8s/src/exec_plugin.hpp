// Credentials from a program: the protocol of client.authentication.k8s.io.
#pragma once

#include <hypertune/k8s/access.hpp>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

struct PluginCredential {
  std::string token = {}, client_certificate = {}, client_key = {};
  std::optional<double> expires = {};  ///< seconds since the Unix epoch
};

/// Runs it, at most `deadline` seconds. Error of kind `usage` that names the program and how to get it; it tells
/// nothing of what the program printed on its standard output. Blocks.
PluginCredential run_plugin(const Access& access, std::stop_token stop, double deadline = 60);

/// Reads what it printed. Error of kind `protocol` otherwise.
PluginCredential read_plugin_output(std::string_view text, const std::string& api_version);

/// RFC 3339 to seconds since the Unix epoch.
std::optional<double> parse_time(std::string_view text);

}  // namespace hypertune::inline v0::k8s::detail
