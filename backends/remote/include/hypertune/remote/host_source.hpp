// HostSource: a source of the host list, polled during a run.
#pragma once

#include <hypertune/remote/host_list.hpp>
#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// The changes since the last poll.
struct HostChange {
  HostList joined;                   ///< new hosts, and those whose resources have changed
  std::vector<std::string> left;     ///< names of hosts that were removed or have changed
  std::optional<std::string> error;  ///< the list could not be read: the last one stays valid
  bool empty() const { return joined.empty() && left.empty() && !error; }
};

/// A value type: a copy is a separate source. Not thread-safe.
class HostSource {
 public:
  HostSource() = default;                                ///< no hosts
  HostSource(HostList hosts);                            // NOLINT: a list is a source that does not change
  HostSource(std::vector<std::string> names);            // NOLINT
  HostSource(std::initializer_list<const char*> names);  // NOLINT: {"host1", "host2"}

  /// A file for parse_host_lines(); changes to it during the run take effect.
  static HostSource file(std::filesystem::path file, Seconds interval = 5);
  /// A program that prints the hosts (parse_hosts()) within `timeout`.
  static HostSource command(std::vector<std::string> arguments, Seconds interval = 10, Seconds timeout = 30);
  /// A function that poll() calls. If it throws, the last list stays valid.
  static HostSource callback(std::function<HostList()> hosts, Seconds interval = 5);
  /// The hosts of the Slurm allocation of this program.
  static HostSource slurm();
  /// The hosts of HYPERTUNE_HOSTS: names separated by commas, or the path of a file as for file(), as @FILE or with a
  /// '/' in it. nullopt if the variable is not set. Default of an SshSetup without hosts.
  static std::optional<HostSource> environment();

  /// Whether it has a source of hosts; false for HostSource().
  bool given() const { return read_ != nullptr; }

  /// Reads the list. The first call throws on errors; later calls report them in `trouble`. `stop` interrupts the
  /// program of command().
  HostChange poll(const std::stop_token& stop = {});
  /// The hosts of the last poll.
  const HostList& hosts() const { return last_; }
  /// Seconds until the next poll; 0: the list never changes.
  Seconds interval() const { return interval_; }
  /// Whether the list is kept outside this program; then an empty list is reported to the user.
  bool kept_outside() const { return outside_; }
  /// A description for messages: "the hosts of 'hosts.txt'".
  const std::string& what() const { return what_; }

 private:
  using Read = std::function<HostList(const std::stop_token&)>;
  HostSource(Read read, Seconds interval, std::string what, bool outside = false);

  Read read_;
  Seconds interval_ = 0;
  bool outside_ = false;
  std::string what_ = "the list of hosts";
  HostList last_;
  bool looked_ = false;
};

}  // namespace hypertune::inline v0::remote
