// HostSource: where the list of hosts comes from, asked again and again while a run goes on.
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

/// What has changed since the last look.
struct HostChange {
  HostList joined;                     ///< new ones, and those whose resources have changed
  std::vector<std::string> left;       ///< names of those that are listed no more, or have changed
  std::optional<std::string> trouble;  ///< the list could not be read: the last one still holds
  bool empty() const { return joined.empty() && left.empty() && !trouble; }
};

/// A value: a copy is a source of its own. Not thread-safe.
class HostSource {
 public:
  HostSource() = default;                                ///< no hosts
  HostSource(HostList hosts);                            // NOLINT: a list is a source that does not change
  HostSource(std::vector<std::string> names);            // NOLINT
  HostSource(std::initializer_list<const char*> names);  // NOLINT: {"host1", "host2"}

  /// A file of parse_host_lines(); what is written to it during the run counts.
  static HostSource file(std::filesystem::path file, Seconds interval = 5);
  /// A program that prints the hosts (parse_hosts()). It has `timeout` to do so.
  static HostSource command(std::vector<std::string> arguments, Seconds interval = 10, Seconds timeout = 30);
  /// A function of the program, called by poll(). It may throw: then the last list holds.
  static HostSource callback(std::function<HostList()> hosts, Seconds interval = 5);
  /// The Slurm allocation that this program runs in.
  static HostSource slurm();
  /// What HYPERTUNE_HOSTS says: names separated by commas, or the place of a file as of file(), as @FILE or with a '/'
  /// in it. Nullopt where it is not set. A SshSetup without hosts has these.
  static std::optional<HostSource> environment();

  /// Whether it was made of anything: not a HostSource().
  bool given() const { return read_ != nullptr; }

  /// Looks now. The first call throws what goes wrong; a later one puts it into `trouble`. `stop` ends a program that
  /// is asked.
  HostChange poll(const std::stop_token& stop = {});
  /// The hosts of the last look.
  const HostList& hosts() const { return last_; }
  /// Seconds after which another look is worth while; 0: the list never changes.
  Seconds interval() const { return interval_; }
  /// Whether people or programs outside of this one keep the list: they are told when it is empty.
  bool kept_outside() const { return outside_; }
  /// What it is, for messages: "the hosts of 'hosts.txt'".
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
