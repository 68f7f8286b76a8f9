// Checks the options for the ssh client.
#include <hypertune/error.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/ssh/options.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <string>

namespace hypertune::inline v0::ssh {

namespace {

constexpr const char *fork = "ForkAfterAuthentication=no", *input = "StdinNull=no", *type = "SessionType=default";

// An unknown key ends a client with an error, so it is asked, once.
bool knows_newer_keys(const std::string& program) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard guard(mutex);
  const auto found = known.find(program);
  if (found != known.end()) return found->second;
  bool knows = false;
  try {
    const auto asked = process::collect(
        {program, "-G", "-F", "none", "-o", fork, "-o", input, "-o", type, "--", "localhost"}, {.deadline = 10});
    if (asked.late) return false;
    knows = asked.code() == 0;
  } catch (const std::exception&) { return false; }  // whoever starts it then says why it cannot be
  return known[program] = knows;
}

}  // namespace

std::vector<std::string> own_settings(const std::string& program, bool session) {
  std::vector<std::string> all{"RemoteCommand=none"};
  if (!knows_newer_keys(program)) return all;
  all.insert(all.end(), {fork, input});
  if (session) all.emplace_back(type);
  return all;
}

void validate(const SshOptions& ssh) {
  const auto& [program, config, user, port, identity, options, connect_timeout, alive_interval, alive_count, sessions] =
      ssh;
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
  };
  if (program.empty()) fail(Errc::usage, "ssh option 'program' is empty: it names the ssh client");
  if (port < 0 || port > 65535) fail(Errc::usage, "ssh option 'port' is {}, but must be 1 to 65535", port);
  if (!user.empty() && user.front() == '-') fail(Errc::usage, "ssh option 'user' is '{}', which is no name", user);
  if (!(connect_timeout >= 1 && connect_timeout < 1e6))
    fail(Errc::usage, "ssh option 'connect_timeout' is {} s, but must be 1 or more", connect_timeout);
  if (!(alive_interval >= 1 && alive_interval < 1e6))
    fail(Errc::usage, "ssh option 'alive_interval' is {} s, but must be 1 or more", alive_interval);
  if (alive_count < 1) fail(Errc::usage, "ssh option 'alive_count' is {}, but must be 1 or more", alive_count);
  if (sessions < 1) fail(Errc::usage, "ssh option 'sessions' is {}, but must be 1 or more", sessions);
  for (const auto& option : options) {
    const auto equals = option.find('=');
    if (equals == std::string::npos || equals == 0 || option.find('\n') != std::string::npos)
      fail(Errc::usage, "ssh option '{}' must have the form Key=value", option);
    const auto key = lower(option.substr(0, equals)), value = lower(option.substr(equals + 1));
    if (key == "stricthostkeychecking" && (value == "no" || value == "off"))
      fail(Errc::usage, "ssh option '{}' is refused: host keys are always checked; add the hosts' keys to known_hosts",
           option);
    if (key == "userknownhostsfile" && value.find("/dev/null") != std::string::npos)
      fail(Errc::usage, "ssh option '{}' is refused: it would let any machine pass for the host", option);
    for (const char* ours : {"controlmaster", "controlpath", "controlpersist", "batchmode"})
      if (key == ours) fail(Errc::usage, "ssh option '{}' is refused: hypertune sets it itself", option);
  }
}

}  // namespace hypertune::inline v0::ssh
