// HostSource: reading host lists.
#include <hypertune/error.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/host_source.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
HostSource::HostSource(Read read, Seconds interval, std::string what, bool outside)
    : read_(std::move(read)), interval_(interval), outside_(outside), what_(std::move(what)) {}

HostSource::HostSource(HostList hosts) {
  validate_hosts(hosts, "the list of hosts");
  read_ = [hosts = std::move(hosts)](const std::stop_token&) { return hosts; };
}
HostSource::HostSource(std::vector<std::string> names)
    : HostSource([&] {
        HostList hosts;
        for (auto& name : names) hosts.push_back({.name = std::move(name)});
        return hosts;
      }()) {}
HostSource::HostSource(std::initializer_list<const char*> names)
    : HostSource(std::vector<std::string>(names.begin(), names.end())) {}

HostSource HostSource::file(std::filesystem::path file, Seconds interval) {
  auto what = fmt::format("the hosts of '{}'", file.string());
  return {[file = std::move(file)](const std::stop_token&) { return read_host_file(file); }, interval, std::move(what),
          true};
}

HostSource HostSource::command(std::vector<std::string> arguments, Seconds interval, Seconds timeout) {
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
            if (printed->code() != 0)
              fail(Errc::input, "the command '{}' that lists hosts failed with code {}: {}", name, printed->code(),
                   detail::last_line(printed->err));
            return parse_hosts(printed->out, fmt::format("what '{}' printed", name));
          },
          interval, std::move(what), true};
}

HostSource HostSource::callback(std::function<HostList()> hosts, Seconds interval) {
  return {[hosts = std::move(hosts)](const std::stop_token&) {
            auto list = hosts();
            validate_hosts(list, "the hosts of the callback");
            return list;
          },
          interval, "the hosts of the callback"};
}

HostSource HostSource::slurm() {
  return {[](const std::stop_token&) { return slurm_hosts(); }, 0, "the hosts of the Slurm allocation"};
}

std::optional<HostSource> HostSource::environment() {
  const char* value = std::getenv("HYPERTUNE_HOSTS");
  if (value == nullptr || *value == '\0') return std::nullopt;
  std::string text = value;
  if (text.front() == '@') return file(text.substr(1));
  if (text.find('/') != std::string::npos) return file(text);
  std::replace(text.begin(), text.end(), ',', '\n');
  return HostSource([text](const std::stop_token&) { return parse_host_lines(text, "HYPERTUNE_HOSTS"); }, 0,
                    "HYPERTUNE_HOSTS");
}

HostChange HostSource::poll(const std::stop_token& stop) {
  HostChange change;
  HostList now;
  try {
    if (read_) now = read_(stop);
  } catch (const std::exception& error) {
    if (!looked_) throw;
    change.error = error.what();
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

}  // namespace hypertune::inline v0::remote
