// Cluster: the machines of one CLUSTER.yaml, brought up, looked after and taken down again.
#pragma once

#include <hypertune/cluster/access.hpp>
#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/cost.hpp>
#include <hypertune/cluster/journal.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/cluster/provider.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Thrown where a Ctrl-C (ClusterHooks::stop) ended what was being done. Everything is written down.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// A machine that was made cannot come up as it is: another one has to be made once what `what()` says is mended.
class NotComing : public Error {
 public:
  explicit NotComing(const std::string& message) : Error(Errc::io, message) {}
};

struct ClusterHooks {
  std::function<void(const std::string&)> say;  ///< a line for the user; may come from any thread, one at a time
  std::stop_token stop = {};                    ///< ends what is being done
};

struct DownOptions {
  bool workers_only = false;
  bool keep_min_workers = false;
  std::string why = "down";
};

/// A machine as status shows it.
struct MachineStatus {
  Machine machine;
  bool ready = false;
  WallTime launched_at = 0;
};

/// Drives a cluster: at most one of these at a time (across processes, by the journal's lock). To make one is to find
/// out what is there: calls of a driver that died are waited for, and machines whose making was not written down are
/// found by their tags. Thread-safe but for the constructor.
class Cluster {
 public:
  Cluster(ClusterConfig config, AnyAccess access, ClusterHooks hooks = {});
  /// With another provider or folder, for tests and programs of one's own.
  Cluster(ClusterConfig config, AnyProvider provider, std::filesystem::path state, ClusterHooks hooks = {},
          AnyAccess access = {});
  ~Cluster();

  const ClusterConfig& config() const { return config_; }
  const std::filesystem::path& state() const { return journal_.folder(); }
  ClusterJournal& journal() { return journal_; }
  AnyProvider& provider() { return provider_; }
  const AnyAccess& access() const { return access_; }

  /// The machines that there are, after the journal was compared with what the provider says.
  std::vector<Machine> reconcile();
  /// The machines that there are; what has gone is written down. For a cluster that is launching at the same time.
  std::vector<Machine> observe();

  /// Asks for a machine. Written down first. Throws ProviderError.
  Machine launch(const NodeType& type, bool spot, bool head, const std::string& token = new_token());
  /// Ends machines. `wait`: until the provider shows them no more.
  void terminate(const std::vector<Machine>& machines, const std::string& why, bool wait = true);
  /// Waits until it runs and has an address. A provider that cannot be asked for a while is asked again.
  /// What it waits for is told. Throws NotComing for one that does not come up as it was made.
  Machine await_address(const Machine& machine);
  /// Does what the file says is to be done to it. Nothing is done twice.
  MachineReport set_up(const Machine& machine, const UpOptions& options = {}) {
    return access_.set_up(*this, machine, options);
  }

  /// The head and the least number of workers, set up. Where there is no capacity it is asked for again, for as long as
  /// a machine may take to come up. Reports are by machine; what failed is left for another up, but for machines that
  /// were made and never answered: they are ended, so that the next up makes others.
  std::vector<MachineReport> up(const UpOptions& options = {});
  /// Ends the machines; returns how many. Repeats until the provider shows none.
  int down(const DownOptions& options = {});

  void say(const std::string& line) const;
  void check_cancelled() const;
  bool cancelled() const { return hooks_.stop.stop_requested(); }
  const std::stop_token& stop() const { return hooks_.stop; }
  /// From now on this ends what is done; nothing may be under way on another thread.
  void set_stop(std::stop_token stop) { hooks_.stop = std::move(stop); }

 private:
  void recover();
  std::pair<double, double> prices(const std::string& type, bool spot) const;
  void stop_or_terminate(const std::vector<Machine>& machines, const std::string& why);
  std::vector<MachineReport> set_up_all(std::vector<Machine> machines, const UpOptions& options);
  Machine launch_head();
  int launch_workers(std::vector<Machine>& machines, std::vector<MachineReport>& failed);
  void end_unreachable(std::vector<MachineReport>& reports);

  ClusterConfig config_;
  ClusterHooks hooks_;
  ClusterJournal journal_;
  AnyProvider provider_;
  AnyAccess access_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The machines and the costs, without the right to change anything: what `status` shows. Takes no lock.
struct ClusterView {
  std::vector<MachineStatus> machines;
  Ledger ledger;
  CostReport cost;
  std::string driver;   ///< who works on it now; empty: nobody
  std::string trouble;  ///< the provider could not be asked
};
ClusterView view_cluster(const ClusterConfig& config);
/// By a provider of the caller's.
ClusterView view_cluster(const ClusterConfig& config, AnyProvider provider);

/// What a machine is called as a host that trials are placed on.
std::string host_name(const ClusterConfig& config, const Machine& machine);

/// The commands that only this kind of machine gets.
const std::vector<std::string>& role_commands(const ClusterConfig& config, const Machine& machine);

/// What the file says is to be done to such a machine, in short: its commands, and where its files go. Not what the
/// files hold.
std::string setup_print(const ClusterConfig& config, const Machine& machine);
/// Why a machine is not as the file wants it, for people: its set-up has failed, or was another file's. Empty where
/// it is, and where this computer has no record of its set-up.
std::string setup_trouble(const ClusterConfig& config, const Machine& machine);

/// The head of a cluster that is up. Error of kind `usage` if there is none.
Machine find_head(const ClusterConfig& config);
Machine find_head(const ClusterConfig& config, AnyProvider provider);

}  // namespace hypertune::inline v0::cluster
