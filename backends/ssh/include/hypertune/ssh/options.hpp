// SshOptions: how the user's own ssh client is called.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::ssh {

/// Everything that is not said here is as the user's ssh_config says: keys, agent, jump hosts, known_hosts, port. Meant
/// for designated initialisers: `{.config = "cluster.ssh"}`.
struct SshOptions {
  std::string program = "ssh";            ///< the client: looked up in PATH
  std::filesystem::path config = {};      ///< `ssh -F`; empty: the user's own configuration
  std::string user = {};                  ///< empty: as the configuration says
  int port = 0;                           ///< 0: as the configuration says
  std::filesystem::path identity = {};    ///< a private key's file, tried first; empty: as the configuration says
  std::vector<std::string> options = {};  ///< further `Key=value`; host keys can be checked more strictly, never less
  Seconds connect_timeout = 10;           ///< for the TCP connection and the greeting
  Seconds alive_interval = 1;             ///< between signs of life (whole seconds, at least 1)
  int alive_count = 2;                    ///< so many without an answer, and the connection is lost
  int sessions = 6;                       ///< run(), upload() and download() at once; servers allow 10 by default

  /// Error of kind `usage`, e.g. for an option that would weaken the check of host keys.
  void validate() const;
};

}  // namespace hypertune::inline v0::ssh
