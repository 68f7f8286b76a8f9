// SshError: what can go wrong with another machine, told apart so that a program can react and a person can mend it.
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
  name_not_found,     ///< the host's name does not resolve
  unreachable,        ///< refused, no route, or no answer in time
  login_refused,      ///< no key was accepted
  unknown_host_key,   ///< the host's key is not in known_hosts
  changed_host_key,   ///< the host's key is another than known_hosts says
  lost,               ///< a connection that was open is gone
  timeout,            ///< the connection lives, but what was asked for took longer than its deadline
  permission,         ///< a folder or file on the host may not be written or read
  disk_full,          ///< no space or no quota left on the host
  missing_directory,  ///< a folder on the host is not there
  no_execute,         ///< the host does not run programs from there (noexec)
  architecture,       ///< the program is built for another kind of machine
  missing_library,    ///< shared libraries are missing on the host; the message lists them
  missing_program,    ///< a program that is needed is not there on the host
  other
};

/// "login refused", "disk full", …
const char* to_string(Problem problem);

/// Whether trying again later, or another time, may well do: the network's troubles, not the setup's.
constexpr bool is_transient(Problem problem) {
  return problem == Problem::unreachable || problem == Problem::lost || problem == Problem::timeout;
}

/// Whether trying again is of no use before somebody has mended something. Neither this nor transient: it may, or may
/// not.
constexpr bool is_permanent(Problem problem) {
  return !is_transient(problem) && problem != Problem::disk_full && problem != Problem::other;
}

/// An Error about a host; `what()` is one line with the host, what happened, and how to mend it.
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

/// What the ssh client's messages mean. `opened`: the connection had been open before. Never fails: what it does not
/// know is `other` with the last line that the client printed.
SshError classify_client(const std::string& host, std::string_view messages, bool opened);

remote::FailureClass failure_of(Problem problem);

/// What it means for further attempts that an agent was not reached, by what ssh or the host said.
remote::FailureClass classify_agent(const std::string& host, const std::string& said);

/// The same as an error of ssh.
SshError ssh_error(const std::string& host, const remote::HostError& error);

}  // namespace detail
}  // namespace hypertune::inline v0::ssh
