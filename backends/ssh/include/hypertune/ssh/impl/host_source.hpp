// Where hosts come from.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/host_source.hpp>
#include <hypertune/ssh/impl/host_list.hpp>
#include <hypertune/ssh/impl/local_process.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::ssh {
namespace detail {

struct Printed {
  int exit = 0;
  bool late = false;
  std::string out, err;
};
// What a program of this machine prints; nullopt if it cannot be started.
inline std::optional<Printed> printed_by(const std::vector<std::string>& arguments, Seconds timeout,
                                         const std::stop_token& stop = {}) {
  Printed printed;
  const auto into = [](std::string& text) {
    return [&text](std::string_view bytes) {
      text += bytes;
      return true;
    };
  };
  struct NotStarted {};
  try {
    const auto outcome =
        run_process(arguments, {}, into(printed.out), into(printed.err),
                    // Lists are waited for before anybody hears a Ctrl-C.
                    {.deadline = timeout, .max_output = std::size_t{16} << 20U, .stop = stop, .bound = true},
                    [](int) { throw NotStarted(); });
    printed.exit = outcome.exit_code();
    printed.late = outcome.late;
  } catch (const NotStarted&) { return std::nullopt; }
  return printed;
}

}  // namespace detail

HYPERTUNE_SSH_INLINE HostList slurm_hosts() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  auto list = variable("SLURM_JOB_NODELIST");
  if (list.empty()) list = variable("SLURM_NODELIST");
  if (list.empty())
    fail(Errc::usage,
         "there is no Slurm allocation here (SLURM_JOB_NODELIST is not set): start this with sbatch or within salloc");
  std::vector<std::string> names;
  // Slurm knows forms of its own; where its commands are not to be had, the usual form is taken apart here.
  if (const auto printed = detail::printed_by({"scontrol", "show", "hostnames", list}, 20);
      printed && printed->exit == 0 && !printed->late)
    for (const auto& host : parse_host_lines(printed->out, "scontrol show hostnames")) names.push_back(host.name);
  if (names.empty()) names = expand_node_list(list);
  const auto cpus = detail::expand_counts(variable("SLURM_JOB_CPUS_PER_NODE"), names.size());
  const auto gpus = variable("SLURM_GPUS_ON_NODE");
  HostList hosts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    HostSpec host{.name = names[i]};
    if (!cpus.empty()) host.cpus = cpus[i];
    if (!gpus.empty() && gpus.find_first_not_of("0123456789") == std::string::npos) host.gpus = std::atof(gpus.c_str());
    hosts.push_back(std::move(host));
  }
  validate_hosts(hosts, "the Slurm allocation");
  return hosts;
}

HYPERTUNE_SSH_INLINE HostSource::HostSource(Read read, Seconds interval, std::string what, bool outside)
    : read_(std::move(read)), interval_(interval), outside_(outside), what_(std::move(what)) {}

HYPERTUNE_SSH_INLINE HostSource::HostSource(HostList hosts) {
  validate_hosts(hosts, "the list of hosts");
  read_ = [hosts = std::move(hosts)](const std::stop_token&) { return hosts; };
}
HYPERTUNE_SSH_INLINE HostSource::HostSource(std::vector<std::string> names)
    : HostSource([&] {
        HostList hosts;
        for (auto& name : names) hosts.push_back({.name = std::move(name)});
        return hosts;
      }()) {}
HYPERTUNE_SSH_INLINE HostSource::HostSource(std::initializer_list<const char*> names)
    : HostSource(std::vector<std::string>(names.begin(), names.end())) {}

HYPERTUNE_SSH_INLINE HostSource HostSource::file(std::filesystem::path file, Seconds interval) {
  auto what = fmt::format("the hosts of '{}'", file.string());
  return {[file = std::move(file)](const std::stop_token&) { return read_host_file(file); }, interval, std::move(what),
          true};
}

HYPERTUNE_SSH_INLINE HostSource HostSource::command(std::vector<std::string> arguments, Seconds interval,
                                                    Seconds timeout) {
  if (arguments.empty() || arguments.front().empty())
    fail(Errc::usage, "the command that lists hosts is empty: it must name a program");
  auto what = fmt::format("the hosts that '{}' prints", arguments.front());
  return {[arguments = std::move(arguments), timeout](const std::stop_token& stop) {
            const auto printed = detail::printed_by(arguments, timeout, stop);
            const auto& name = arguments.front();
            if (!printed)
              fail(Errc::input, "the command '{}' that lists hosts cannot be run: is it there, and executable?", name);
            if (printed->late)
              fail(Errc::input, "the command '{}' that lists hosts took more than {:.3g} s", name, timeout);
            if (printed->exit != 0)
              fail(Errc::input, "the command '{}' that lists hosts failed with code {}: {}", name, printed->exit,
                   detail::last_line(printed->err));
            return parse_hosts(printed->out, fmt::format("what '{}' printed", name));
          },
          interval, std::move(what), true};
}

HYPERTUNE_SSH_INLINE HostSource HostSource::callback(std::function<HostList()> hosts, Seconds interval) {
  return {[hosts = std::move(hosts)](const std::stop_token&) {
            auto list = hosts();
            validate_hosts(list, "the hosts of the callback");
            return list;
          },
          interval, "the hosts of the callback"};
}

HYPERTUNE_SSH_INLINE HostSource HostSource::slurm() {
  return {[](const std::stop_token&) { return slurm_hosts(); }, 0, "the hosts of the Slurm allocation"};
}

HYPERTUNE_SSH_INLINE std::optional<HostSource> HostSource::environment() {
  const char* value = std::getenv("HYPERTUNE_HOSTS");
  if (value == nullptr || *value == '\0') return std::nullopt;
  std::string text = value;
  if (text.front() == '@') return file(text.substr(1));
  if (text.find('/') != std::string::npos) return file(text);
  std::replace(text.begin(), text.end(), ',', '\n');
  return HostSource([text](const std::stop_token&) { return parse_host_lines(text, "HYPERTUNE_HOSTS"); }, 0,
                    "HYPERTUNE_HOSTS");
}

HYPERTUNE_SSH_INLINE HostChange HostSource::poll(const std::stop_token& stop) {
  HostChange change;
  HostList now;
  try {
    if (read_) now = read_(stop);
  } catch (const std::exception& error) {
    if (!looked_) throw;
    change.trouble = error.what();
    return change;
  }
  looked_ = true;
  const auto find = [](const HostList& in, const std::string& name) {
    return std::find_if(in.begin(), in.end(), [&](const auto& host) { return host.name == name; });
  };
  for (const auto& host : last_) {
    const auto same = find(now, host.name);
    if (same == now.end() || !(*same == host)) change.left.push_back(host.name);
  }
  for (const auto& host : now) {
    const auto same = find(last_, host.name);
    if (same == last_.end() || !(*same == host)) change.joined.push_back(host);
  }
  last_ = std::move(now);
  return change;
}

}  // namespace hypertune::ssh
