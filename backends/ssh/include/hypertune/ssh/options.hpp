// SshOptions: how the user's own ssh client is called.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::ssh {

/// Everything not given here is taken from the user's ssh_config: keys, agent, jump hosts, known_hosts, port. Meant for
/// designated initialisers: `{.config = "cluster.ssh"}`.
struct SshOptions {
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

  /// Error of kind `usage`, e.g. for an option that would weaken the check of host keys.
  void validate() const;
};

/// Settings `Key=value` of this client that must not come from the user's configuration: they would run it in the
/// background (ForkAfterAuthentication), take its input away (StdinNull), or start something else than the given command
/// (RemoteCommand; `session`: also SessionType, without which `-N` and `-s` decide). Clients before OpenSSH 8.7 know
/// RemoteCommand alone.
std::vector<std::string> own_settings(const std::string& program, bool session);

}  // namespace hypertune::inline v0::ssh
