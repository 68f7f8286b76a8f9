// How options that are more than a plain value stand in files: counts, maps, and options within options.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/pool_size.hpp>
#include <hypertune/config/shape.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/ssh_executor_options.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_options.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// The form of an option of type F, or of one whose description names F as its form (FormTag): its shape, its default
/// as written in a file, and its reader, which throws the Errors. A new form is a specialisation here.
template <class F>
struct OptionForm;

/// "1..32", or "8" for 1..8
template <>
struct OptionForm<PoolSize> {
  static Shape shape();
  static std::string fallback(const PoolSize& pool);
  static void read(const Node& node, PoolSize& pool);
};
/// {label: value}
template <>
struct OptionForm<std::map<std::string, std::string>> {
  static Shape shape() { return shape::entries(shape::scalar()); }
  static std::string fallback(const std::map<std::string, std::string>&) { return {}; }
  static void read(const Node& node, std::map<std::string, std::string>& map);
};
/// {~/code: ./code, data: {from: /data/set, exclude: ["*.tmp"]}}
template <>
struct OptionForm<std::vector<FileMount>> {
  static Shape shape();
  static std::string fallback(const std::vector<FileMount>&) { return {}; }
  static void read(const Node& node, std::vector<FileMount>& mounts);
};
/// true | /path/on/the/hosts | {folder: /nfs/checkpoints, on_hosts: /mnt/checkpoints}
template <>
struct OptionForm<std::optional<SharedCheckpoints>> {
  static Shape shape();
  static std::string fallback(const std::optional<SharedCheckpoints>&) { return "false"; }
  static void read(const Node& node, std::optional<SharedCheckpoints>& shared);
};
/// [a, {name: b, slots: 2}] | {file: FILE} | {command: [PROGRAM, …], interval: 10s} | slurm
template <>
struct OptionForm<SshHosts> {
  static Shape shape();
  static std::string fallback(const SshHosts&) { return {}; }
  static void read(const Node& node, SshHosts& hosts);
};

/// gpu | [gpu, big] | {zone: a}
template <>
struct OptionForm<HostLabels> {
  static Shape shape(const HostLabels&);
  static std::string fallback(const std::map<std::string, std::string>&) { return {}; }
  static void read(const Node& node, std::map<std::string, std::string>& labels, const HostLabels&);
};
/// Key=value | [Key=value, …] | {Key: value}
template <>
struct OptionForm<SshSettings> {
  static Shape shape(const SshSettings&);
  static std::string fallback(const std::vector<std::string>&) { return {}; }
  static void read(const Node& node, std::vector<std::string>& settings, const SshSettings&);
};
/// 4h, or Slurm's 4:00:00
template <>
struct OptionForm<SlurmTime> {
  static Shape shape(const SlurmTime&);
  static std::string fallback(Seconds time);
  static void read(const Node& node, Seconds& time, const SlurmTime& form);
};
/// A pod's manifest, kept as JSON
template <>
struct OptionForm<PodManifest> {
  static Shape shape(const PodManifest&);
  static std::string fallback(const std::string&) { return {}; }
  static void read(const Node& node, std::string& pod, const PodManifest&);
};

/// The seconds of a time in Slurm's notation: "30:00" (minutes), "4:00:00", "1-12", "1-12:30", "2-12:00:00". nullopt
/// for anything else, including a plain number: it means seconds here but minutes in Slurm.
std::optional<Seconds> slurm_time(std::string_view text);

/// The name of a host; fails if no program could be given it.
std::string ssh_host_name(const Node& node);

}  // namespace hypertune::inline v0::detail
