// SshError: errors about another machine, classified so that a program can react and a user can fix them.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/host_error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::ssh {

enum class Problem : std::uint8_t {
  no_client,          ///< there is no `ssh` program here, or it cannot be run
  bad_config,         ///< the ssh_config is missing or malformed, or an option is unknown
  local_file,         ///< a file of this machine cannot be read or written
  name_not_found,     ///< the host name does not resolve
  unreachable,        ///< connection refused, no route, or no answer in time
  login_refused,      ///< no key was accepted
  unknown_host_key,   ///< the host's key is not in known_hosts
  changed_host_key,   ///< the host's key differs from the one in known_hosts
  lost,               ///< an open connection broke
  timeout,            ///< the connection is open, but the operation did not finish by its deadline
  permission,         ///< a folder or file on the host may not be written or read
  disk_full,          ///< no space or no quota left on the host
  missing_directory,  ///< a folder on the host does not exist
  no_execute,         ///< the file system on the host does not allow execution (noexec)
  architecture,       ///< the program is built for another kind of machine
  missing_library,    ///< shared libraries are missing on the host; the message lists them
  missing_program,    ///< a required program is missing on the host
  other
};

/// "login refused", "disk full", …
const char* to_string(Problem problem);

/// Whether a later retry may well succeed: problems of the network, not of the set-up.
constexpr bool is_transient(Problem problem) {
  return problem == Problem::unreachable || problem == Problem::lost || problem == Problem::timeout;
}

/// Whether a retry is useless until somebody fixes something. Problems that are neither transient nor permanent may go
/// away or not.
constexpr bool is_permanent(Problem problem) {
  return !is_transient(problem) && problem != Problem::disk_full && problem != Problem::other;
}

/// An Error about a host; `what()` is one line with the host, the problem and how to fix it.
class SshError : public Error {
 public:
  SshError(Problem problem, std::string host, const std::string& message)
      : Error(code_of(problem), message), problem_(problem), host_(std::move(host)) {}
  Problem problem() const noexcept { return problem_; }
  const std::string& host() const noexcept { return host_; }

 private:
  static constexpr Errc code_of(Problem problem) {
    switch (problem) {
      case Problem::no_client:
      case Problem::bad_config:
      case Problem::name_not_found:
      case Problem::architecture: return Errc::usage;
      default: return Errc::io;
    }
  }

  Problem problem_;
  std::string host_;
};

namespace detail {

/// Classifies the messages of the ssh client. `opened`: the connection had been open before. Unknown messages give
/// `other` with the last line that the client printed.
SshError classify_client(const std::string& host, std::string_view messages, bool opened);

remote::FailureClass failure_of(Problem problem);

/// What the failure to reach an agent means for further attempts, from the messages of ssh or the host.
remote::FailureClass classify_agent(const std::string& host, const std::string& said);

/// Converts a HostError into an SshError.
SshError ssh_error(const std::string& host, const remote::HostError& error);

}  // namespace detail
}  // namespace hypertune::inline v0::ssh
