// SshOptions: how the user's own ssh client is called.
#pragma once

#include <hypertune/option.hpp>
#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
/// `Key=value` of an ssh_config: one, a list, or a map.
struct SshSettings {
  using form_tag = void;
};
}  // namespace detail

/// Everything not given here is taken from the user's ssh_config: keys, agent, jump hosts, known_hosts, port. Meant for
/// designated initialisers: `{.config = "cluster.ssh"}`.
struct SshOptions {
  static constexpr const char* type = "ssh";

  std::string program = "ssh";            ///< the client: searched in PATH
  std::filesystem::path config = {};      ///< `ssh -F`; empty: the user's own configuration
  std::string user = {};                  ///< empty: as in the configuration
  int port = 0;                           ///< 0: as in the configuration
  std::filesystem::path identity = {};    ///< file of a private key, tried first; empty: as in the configuration
  std::vector<std::string> options = {};  ///< further `Key=value`; host keys can be checked more strictly, never less
  Seconds connect_timeout = 10;           ///< seconds for the TCP connection and the ssh banner
  Seconds alive_interval = 1;             ///< seconds between keep-alive messages (rounded up; at least 1)
  int alive_count = 2;                    ///< unanswered keep-alive messages until the connection is lost
  int sessions = 6;  ///< limit of run(), upload() and download() at once; servers allow 10 by default

  static void describe(auto& self, auto&& option) {
    option("ssh_config", self.config, "in place of `~/.ssh/config`");
    option("identity_file", self.identity, "a private key");
    option("user", self.user, "the account on the hosts");
    option("port", self.port, between(1, 65535).without_default(), "the port of the hosts' SSH servers");
    option("options", self.options, detail::SshSettings{},
           "further settings, as of `ssh -o`: `{ServerAliveInterval: 5}`");
    option("connect_timeout", self.connect_timeout, at_least(1).in(Bounds::Unit::seconds),
           "how long a host may take to answer a login");
  }
};

}  // namespace hypertune::inline v0
