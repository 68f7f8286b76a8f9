// Classifies the messages of ssh and of remote commands.
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/ssh/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::ssh {

const char* to_string(Problem problem) {
  switch (problem) {
    case Problem::no_client: return "no ssh client";
    case Problem::bad_config: return "bad ssh configuration";
    case Problem::local_file: return "a file of this machine";
    case Problem::name_not_found: return "name not found";
    case Problem::unreachable: return "unreachable";
    case Problem::login_refused: return "login refused";
    case Problem::unknown_host_key: return "unknown host key";
    case Problem::changed_host_key: return "changed host key";
    case Problem::lost: return "connection lost";
    case Problem::timeout: return "timeout";
    case Problem::permission: return "permission denied";
    case Problem::disk_full: return "disk full";
    case Problem::missing_directory: return "missing directory";
    case Problem::no_execute: return "no execution allowed";
    case Problem::architecture: return "another architecture";
    case Problem::missing_library: return "missing library";
    case Problem::missing_program: return "missing program";
    case Problem::other: return "trouble";
  }
  return "trouble";
}

namespace detail {

using remote::detail::last_line;

// The line that contains `part`, without unprintable characters.
static std::string line_with(std::string_view messages, std::string_view part) {
  const auto at = messages.find(part);
  if (at == std::string_view::npos) return {};
  const auto before = messages.rfind('\n', at);
  const auto begin = before == std::string_view::npos ? 0 : before + 1;
  return last_line(messages.substr(begin, messages.find('\n', at) - begin));
}

SshError classify_client(const std::string& host, std::string_view messages, bool opened) {
  const auto has = [&](std::string_view part) { return messages.find(part) != std::string_view::npos; };
  const auto any = [&](std::initializer_list<std::string_view> parts) {
    for (const auto part : parts)
      if (auto line = line_with(messages, part); !line.empty()) return line;
    return std::string();
  };
  const auto made = [&](Problem problem, const std::string& text) {
    return SshError(problem, host, fmt::format("host '{}': {}", host, text));
  };
  if (opened) {
    const auto line = any({"not responding", "Connection reset", "Broken pipe", "closed by remote host",
                           "Connection closed", "Connection to", "disconnect", "No route to host", "timed out"});
    const auto last = line.empty() ? last_line(messages) : line;
    return made(Problem::lost, "the connection is lost" + (last.empty() ? "" : " (" + last + ")"));
  }
  if (has("REMOTE HOST IDENTIFICATION HAS CHANGED") || (has("has changed and you have requested strict checking"))) {
    std::string place = line_with(messages, "Offending "), file;  // "Offending ED25519 key in FILE:LINE"
    if (const auto in = place.find(" key in "); in != std::string::npos) {
      place = place.substr(in + 8);
      file = place.substr(0, place.rfind(':'));
    }
    // The name as in that file: "Host key for [127.0.0.1]:2222 has changed and you have …"
    std::string name = host;
    const auto line = line_with(messages, " has changed and you have requested strict checking");
    if (constexpr std::string_view begin = "Host key for "; line.starts_with(begin))
      name = line.substr(begin.size(), line.find(" has changed") - begin.size());
    return made(
        Problem::changed_host_key,
        fmt::format("its host key is not the one that is known{}: somebody may be in between, or the machine is "
                    "a new one; if you know that it is, remove the old key: ssh-keygen {}-R {}",
                    place.empty() ? "" : " (" + place + ")",
                    file.empty() ? "" : "-f " + hypertune::detail::shell_quote(file) + " ",
                    hypertune::detail::shell_quote(name)));
  }
  if (has("Host key verification failed") || has("host key is known for"))
    return made(
        Problem::unknown_host_key,
        fmt::format("its host key is not known here; connect once by hand and compare it (ssh {}), or add it to "
                    "known_hosts",
                    host));
  if (const auto line = any({"Could not resolve hostname"}); !line.empty())
    return made(Problem::name_not_found,
                fmt::format("there is no host of this name ({}); check its spelling, or give it a Host entry in the "
                            "ssh_config",
                            line));
  if (const auto line = any({"Can't open user config file", "Bad configuration option", "bad configuration options",
                             "Bad owner or permissions on", "keyword", "Unsupported option", "unknown key type",
                             "Bad number", "Invalid key", "Bad key", "garbage at end of line", "invalid time value",
                             "unsupported option", "missing argument", "Missing argument"});
      !line.empty())
    return made(Problem::bad_config, fmt::format("ssh does not accept its configuration: {}", line));
  if (const auto line =
          any({"Permission denied (", "Too many authentication failures", "No more authentication methods",
               "account is currently not available", "account has expired"});
      !line.empty()) {
    std::string hint =
        "add your key there (ssh-copy-id), or name it in the ssh_config (IdentityFile), or load it into "
        "your ssh-agent";
    if (has("UNPROTECTED PRIVATE KEY FILE"))
      hint = "the private key may be read by others and was ignored: chmod 600 it";
    else if (const auto key = any({"not accessible:", "Load key"}); !key.empty())
      hint = key;
    return made(Problem::login_refused, fmt::format("it refuses the login ({}): {}", line, hint));
  }
  if (const auto line =
          any({"Connection refused", "No route to host", "Connection timed out", "Network is unreachable", "timed out",
               "Operation timed out", "Network is down", "Host is down", "banner exchange", "not responding"});
      !line.empty())
    return made(Problem::unreachable,
                fmt::format("it cannot be reached ({}); is it up, and is this its address and port?", line));
  if (const auto line = any({"kex_exchange_identification", "Connection closed by", "Connection reset", "Broken pipe",
                             "closed by remote host"});
      !line.empty())
    return made(Problem::unreachable,
                fmt::format("it closed the connection before the login ({}); too many connections at once, a jump host "
                            "that fails, or a server that lets nobody in",
                            line));
  const auto last = last_line(messages);
  return made(Problem::other, last.empty() ? "ssh ended without a message" : "ssh says: " + last);
}

remote::FailureClass failure_of(Problem problem) {
  return is_transient(problem)   ? remote::FailureClass::transient
         : is_permanent(problem) ? remote::FailureClass::permanent
                                 : remote::FailureClass::unknown;
}

remote::FailureClass classify_agent(const std::string& host, const std::string& said) {
  using remote::FailureClass;
  if (said.empty()) return FailureClass::unknown;
  if (said.find("Temporary failure in name resolution") != std::string::npos) return FailureClass::transient;
  if (said.find("error while loading shared libraries") != std::string::npos) return FailureClass::permanent;
  const auto client = failure_of(classify_client(host, said, false).problem());
  if (client != FailureClass::unknown) return client;
  const auto other = remote::classify_messages(said);
  return other ? remote::failure_of(*other) : FailureClass::unknown;
}

SshError ssh_error(const std::string& host, const remote::HostError& error) {
  static constexpr auto problem_of = [](remote::HostProblem problem) {
    switch (problem) {
      case remote::HostProblem::local_file: return Problem::local_file;
      case remote::HostProblem::permission: return Problem::permission;
      case remote::HostProblem::disk_full: return Problem::disk_full;
      case remote::HostProblem::missing_directory: return Problem::missing_directory;
      case remote::HostProblem::no_execute: return Problem::no_execute;
      case remote::HostProblem::architecture: return Problem::architecture;
      case remote::HostProblem::missing_library: return Problem::missing_library;
      case remote::HostProblem::missing_program: return Problem::missing_program;
      case remote::HostProblem::other: break;
    }
    return Problem::other;
  };
  return {problem_of(error.problem()), host, error.what()};
}

}  // namespace detail
}  // namespace hypertune::inline v0::ssh
