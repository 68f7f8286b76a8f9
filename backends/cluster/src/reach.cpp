// Reaching machines with ssh: its options, known_hosts and host keys.
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/reach.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/detail/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace hypertune::inline v0::cluster {
namespace detail {

static std::filesystem::path known_hosts(const std::filesystem::path& state) { return state / "known_hosts"; }

// Prevents two threads from writing the file at once.
static std::mutex& known_hosts_mutex() {
  static std::mutex mutex;
  return mutex;
}

static void tell_host_keys(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state) {
  if (machine.host_keys.empty()) return;
  const std::lock_guard lock(known_hosts_mutex());
  const auto file = known_hosts(state);
  auto text = read_file(file).value_or("");
  const auto alias = host_alias(config, machine);
  bool changed = false;
  for (const auto& key : machine.host_keys) {
    const auto line = alias + " " + key + "\n";
    if (text.find(line) != std::string::npos) continue;
    text += line;
    changed = true;
  }
  if (changed) replace_file(file, text);
}

}  // namespace detail

ssh::SshOptions ssh_options(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state) {
  ssh::SshOptions options;
  options.config = config.auth.ssh_config;
  options.user = config.auth.ssh_user;
  options.identity = config.auth.ssh_private_key;
  options.port = machine.port;
  options.alive_interval = 5;
  options.alive_count = 3;
  if (!config.auth.ssh_proxy_command.empty())
    options.options.push_back("ProxyCommand=" + config.auth.ssh_proxy_command);
  if (config.provider.type != "local") {
    detail::tell_host_keys(config, machine, state);
    // Keys are stored by the machine's name, because addresses are reused by other machines.
    options.options.push_back("HostKeyAlias=" + detail::host_alias(config, machine));
    options.options.push_back("UserKnownHostsFile=" + detail::known_hosts(state).string());
    options.options.push_back(
        std::string("StrictHostKeyChecking=") +
        (config.provider.trust_new_host_keys && machine.host_keys.empty() ? "accept-new" : "yes"));
  }
  return options;
}

std::vector<std::string> ssh_command(const ClusterConfig& config, const Machine& machine,
                                     const std::filesystem::path& state, const std::vector<std::string>& extra,
                                     const std::vector<std::string>& command) {
  const auto options = ssh_options(config, machine, state);
  std::vector<std::string> all{options.program};
  if (!options.config.empty()) all.insert(all.end(), {"-F", options.config.string()});
  if (!options.user.empty()) all.insert(all.end(), {"-l", options.user});
  if (options.port != 0) all.insert(all.end(), {"-p", fmt::format("{}", options.port)});
  if (!options.identity.empty()) all.insert(all.end(), {"-i", options.identity.string()});
  for (const auto& option : options.options) all.insert(all.end(), {"-o", option});
  // A shell or a command in the foreground, with this terminal's input, whatever the configuration says. (-N precedes.)
  const bool session = std::find(extra.begin(), extra.end(), "-N") == extra.end();
  for (const auto& option : ssh::own_settings(options.program, session)) all.insert(all.end(), {"-o", option});
  all.insert(all.end(), {"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=15"});
  all.insert(all.end(), extra.begin(), extra.end());
  all.push_back(machine.address);
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

namespace detail {

// The values of a key in the output of `ssh -G`.
static std::vector<std::string> ssh_setting(std::string_view settings, std::string_view key) {
  std::vector<std::string> words;
  const auto at = ("\n" + std::string(settings)).find("\n" + std::string(key) + " ");
  if (at == std::string::npos) return words;
  auto rest = settings.substr(at + key.size() + 1);
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty())
    if (const auto word = hypertune::detail::take_until(rest, ' '); !word.empty()) words.emplace_back(word);
  return words;
}

}  // namespace detail

std::vector<std::string> known_host_keys(const ClusterConfig& config, const Machine& machine,
                                         const std::filesystem::path& state) {
  const process::RunOptions options{.deadline = 30};
  const auto settings = process::collect(ssh_command(config, machine, state, {"-G"}), options).out;
  const auto first = [&](const char* key) {
    const auto words = detail::ssh_setting(settings, key);
    return words.empty() ? std::string() : words.front();
  };
  auto name = first("hostkeyalias");
  if (name.empty()) {
    name = first("hostname");
    if (const auto port = first("port"); !port.empty() && port != "22") name = fmt::format("[{}]:{}", name, port);
  }
  std::vector<std::string> keys;
  for (const char* setting : {"userknownhostsfile", "globalknownhostsfile"})
    for (auto file : detail::ssh_setting(settings, setting)) {
      if (file.starts_with("~/"))
        if (const char* home = std::getenv("HOME")) file = std::string(home) + file.substr(1);
      std::string found;
      try {
        found = process::collect({"ssh-keygen", "-F", name, "-f", file}, options).out;
      } catch (const Error&) { return keys; }  // ssh-keygen is not installed
      std::string_view rest = found;
      while (!rest.empty()) {
        const auto line = hypertune::detail::take_until(rest, '\n');
        if (line.empty() || line.front() == '#' || line.front() == '@') continue;
        if (const auto space = line.find(' '); space != std::string_view::npos)
          keys.emplace_back(line.substr(space + 1));
      }
    }
  return keys;
}

void forget_host_key(const ClusterConfig& config, const Machine& machine, const std::filesystem::path& state) {
  const std::lock_guard lock(detail::known_hosts_mutex());
  const auto file = detail::known_hosts(state);
  const auto text = detail::read_file(file);
  if (!text) return;
  const auto alias = detail::host_alias(config, machine) + " ";
  std::string kept;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (!rest.starts_with(alias)) kept += rest.substr(0, end);
    rest.remove_prefix(end);
  }
  if (kept != *text) detail::replace_file(file, kept);
}

}  // namespace hypertune::inline v0::cluster
