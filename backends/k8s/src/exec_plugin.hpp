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

/// Runs the plugin for at most `deadline` seconds. The Error of kind `usage` names the program and how to get it, and
/// contains nothing of its standard output, which may be secret. Blocks.
PluginCredential run_plugin(const Access& access, std::stop_token stop, double deadline = 60);

/// Parses the plugin's output. Error of kind `protocol` if it is not valid.
PluginCredential read_plugin_output(std::string_view text, const std::string& api_version);

/// RFC 3339 to seconds since the Unix epoch; nullopt: not such a time.
std::optional<double> parse_time(std::string_view text);

}  // namespace hypertune::inline v0::k8s::detail
