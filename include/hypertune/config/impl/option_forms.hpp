// How options that are more than a plain value stand in files.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/option_forms.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/pod_check.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/yaml_json.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

std::optional<Seconds> slurm_time(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<double> {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
    return value;
  };
  Seconds seconds = 0;
  const auto dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  if (days) {
    const auto count = number(text.substr(0, dash));
    if (!count) return std::nullopt;
    seconds = *count * 86400;
    text.remove_prefix(dash + 1);
  }
  std::vector<double> parts;
  for (bool more = true; more;) {
    const auto colon = text.find(':');
    more = colon != std::string_view::npos;
    const auto part = number(text.substr(0, colon));
    if (!part || parts.size() == 3) return std::nullopt;
    parts.push_back(*part);
    if (more) text.remove_prefix(colon + 1);
  }
  if (!days && parts.size() == 1) return std::nullopt;
  // After days the first part is hours; else the last parts are minutes and seconds.
  double unit = days || parts.size() == 3 ? 3600 : 60;
  for (const double part : parts) {
    seconds += part * unit;
    unit /= 60;
  }
  return seconds;
}

std::string ssh_host_name(const Node& node) {
  const auto name = node.as<std::string>();
  if (name.empty() || name.front() == '-' || name.find_first_of(" \t\n\r'\"\\`$;&|<>(){}*?!#,") != std::string::npos)
    node.fail("'{}' is not the name of a host", name);
  return name;
}

Shape OptionForm<PoolSize>::shape() { return shape::text("^[0-9]+(\\.\\.[0-9]+)?$"); }
std::string OptionForm<PoolSize>::fallback(const PoolSize& pool) { return fmt::format("{}..{}", pool.min, pool.max); }
void OptionForm<PoolSize>::read(const Node& node, PoolSize& pool) {
  const auto text = node.written();
  const auto size = parse_pool_size(text);
  if (!size) node.fail("'{}' must be like 1..32, or 8 for 1..8, not '{}'", node.path(), text);
  pool = *size;
}

void OptionForm<std::map<std::string, std::string>>::read(const Node& node, std::map<std::string, std::string>& map) {
  for (const auto& [name, value] : node.entries()) map[name] = value.written();
}

Shape OptionForm<std::vector<FileMount>>::shape() {
  return shape::entries(shape::either({shape::text(), shape::map(file_mount_keys())}));
}
void OptionForm<std::vector<FileMount>>::read(const Node& node, std::vector<FileMount>& mounts) {
  for (const auto& [remote, value] : node.entries()) {
    FileMount mount{.remote = remote, .local = {}, .exclude = {}};
    if (value.is_map()) {
      check_values(value, file_mount_keys());
      mount.local = value["from"].as<std::string>();
      if (const auto exclude = value.find("exclude")) mount.exclude = exclude->texts();
    } else {
      mount.local = value.as<std::string>();
    }
    if (remote.empty() || remote == "~" || remote == "/")
      value.fail("'{}' cannot be mounted to: name a file or folder below it", remote);
    if (mount.local.empty()) value.fail("'{}' is empty: name a file or folder of this machine", value.path());
    for (const auto& other : mounts) {
      const std::string& longer = other.remote.size() > remote.size() ? other.remote : remote;
      const std::string& shorter = other.remote.size() > remote.size() ? remote : other.remote;
      if (longer.starts_with(shorter + "/"))
        value.fail("'{}' lies within the file mount '{}': mount them beside each other", longer, shorter);
    }
    mounts.push_back(std::move(mount));
  }
}

Shape OptionForm<std::optional<SharedCheckpoints>>::shape() {
  return shape::either({shape::text(), shape::map(shared_keys())});
}
void OptionForm<std::optional<SharedCheckpoints>>::read(const Node& node, std::optional<SharedCheckpoints>& given) {
  SharedCheckpoints shared;
  const auto on_hosts = [&](const Node& place) {
    shared.on_hosts = place.as<std::string>();
    if (!shared.on_hosts.starts_with('/') && !shared.on_hosts.starts_with("~/"))
      place.fail("'{}' must be a folder of the hosts: an absolute path, or one below '~/', not '{}'", place.path(),
                 shared.on_hosts);
  };
  if (node.is_map()) {
    check_values(node, shared_keys());
    if (const auto folder = node.find("folder")) {
      shared.folder = folder->as<std::string>();
      if (shared.folder.empty()) folder->fail("'{}' is empty: name a folder of this machine", folder->path());
    }
    if (const auto place = node.find("on_hosts")) on_hosts(*place);
  } else if (const auto text = node.as<std::string>(); text == "true" || text == "false") {
    if (!node.as<bool>()) return given.reset();
  } else {
    on_hosts(node);
  }
  given = std::move(shared);
}

Shape OptionForm<SshHosts>::shape() {
  Shape source = shape::map(host_source_keys());
  source.one_of = {{"file"}, {"command"}};
  const Shape host = shape::either({shape::text(), shape::map(host_keys())});
  return shape::either({shape::word({"slurm"}), shape::filled(shape::list(host)), source});
}
static HostOptions host_from_yaml(const Node& node) {
  if (!node.is_map()) return {.name = ssh_host_name(node)};
  check_values(node, host_keys());
  HostOptions host{.name = ssh_host_name(node["name"])};
  read_known_options(node, host);
  return host;
}

void OptionForm<SshHosts>::read(const Node& node, SshHosts& hosts) {
  if (node.is_list()) {
    for (const auto& item : node.items()) {
      auto host = host_from_yaml(item);
      if (std::any_of(hosts.list.begin(), hosts.list.end(), [&](const auto& h) { return h.name == host.name; }))
        item.fail("host '{}' is listed twice: give it once, with slots: N for several trials", host.name);
      hosts.list.push_back(std::move(host));
    }
    if (hosts.list.empty()) node.fail("'{}' is empty: name a host", node.path());
  } else if (node.is_map()) {
    check_values(node, host_source_keys());
    if (node.has("file") == node.has("command"))
      node.fail("'{}' needs one of 'file' (one host a line) and 'command' (a program that prints them)", node.path());
    if (const auto file = node.find("file")) hosts.file = file->as<std::string>();
    if (const auto command = node.find("command")) {
      hosts.command = command->is_list() ? command->texts() : std::vector{command->as<std::string>()};
      if (hosts.command.empty() || hosts.command.front().empty())
        command->fail("'{}' is empty: it must name a program", command->path());
    }
    if (const auto interval = node.find("interval")) hosts.interval = interval->duration();
  } else if (node.as<std::string>() == "slurm") {
    hosts.slurm = true;
  } else {
    node.fail("'{}' must be a list of hosts, {{file: FILE}}, {{command: […]}} or slurm, not '{}'", node.path(),
              node.as<std::string>());
  }
}

Shape OptionForm<HostLabels>::shape(const HostLabels&) {
  return shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::scalar())});
}
void OptionForm<HostLabels>::read(const Node& node, std::map<std::string, std::string>& labels, const HostLabels&) {
  if (node.is_map()) return OptionForm<std::map<std::string, std::string>>::read(node, labels);
  for (const auto& name : node.texts()) labels[name] = "";
}

Shape OptionForm<SshSettings>::shape(const SshSettings&) {
  return shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::text())});
}
void OptionForm<SshSettings>::read(const Node& node, std::vector<std::string>& settings, const SshSettings&) {
  if (!node.is_map())
    settings = node.texts();
  else
    for (const auto& [key, value] : node.entries()) settings.push_back(key + "=" + value.as<std::string>());
}

Shape OptionForm<SlurmTime>::shape(const SlurmTime&) {
  return shape::text("^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$|^([0-9.]+ *(d|h|m|s|ms)? *)+$");
}
std::string OptionForm<SlurmTime>::fallback(Seconds time) { return written_duration(time); }
void OptionForm<SlurmTime>::read(const Node& node, Seconds& time, const SlurmTime& form) {
  const auto written = node.is_scalar() ? to_string(node.scalar()) : std::string();
  const auto parsed = slurm_time(written);
  time = parsed ? *parsed : node.duration();
  if (!form.bounds.allow(time))
    node.fail("'{}' is {}, but must be 0 or from {} to {}d", node.path(), written, written_duration(form.bounds.least),
              form.bounds.most / 86400);
}

Shape OptionForm<PodManifest>::shape(const PodManifest&) { return shape::map(pod_keys()); }
void OptionForm<PodManifest>::read(const Node& node, std::string& pod, const PodManifest&) {
  check_pod(node);
  JsonWriter json(JsonFor::file);
  pod = put_yaml(json, node).take();  // is valid YAML, too
}

}  // namespace hypertune::inline v0::detail
