// Cluster: starts, manages and terminates the machines of one CLUSTER.yaml.
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

/// Thrown when Ctrl-C (ClusterHooks::stop) has interrupted an operation. The journal is complete at that time.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// A machine was made but cannot come up as it is. A new one has to be made after the problem in `what()` has been
/// fixed.
class CannotStart : public Error {
 public:
  explicit CannotStart(const std::string& message) : Error(Errc::io, message) {}
};

struct ClusterHooks {
  std::function<void(const std::string&)> say;  ///< a line for the user; from any thread, one call at a time
  std::stop_token stop = {};                    ///< interrupts the operation in progress
};

struct DownOptions {
  bool workers_only = false;
  bool keep_min_workers = false;
  std::string why = "down";
};

/// A machine as `status` shows it.
struct MachineStatus {
  Machine machine;
  bool ready = false;
  WallTime launched_at = 0;
};

/// Manages a cluster. There is at most one such object per cluster at a time, across processes: the journal's lock
/// ensures it. The constructor finds out which machines exist: it waits for provider calls of a driver that died, and
/// uses the tags to find machines that were made but not recorded. Thread-safe except for the constructor.
class Cluster {
 public:
  Cluster(ClusterConfig config, AnyAccess access, ClusterHooks hooks = {});
  /// Uses the given provider and folder; for tests and for programs with a provider of their own.
  Cluster(ClusterConfig config, AnyProvider provider, std::filesystem::path state, ClusterHooks hooks = {},
          AnyAccess access = {});
  ~Cluster();

  const ClusterConfig& config() const { return config_; }
  const std::filesystem::path& state() const { return journal_.folder(); }
  ClusterJournal& journal() { return journal_; }
  AnyProvider& provider() { return provider_; }
  const AnyAccess& access() const { return access_; }

  /// The existing machines, after comparing the journal with the provider's list.
  std::vector<Machine> reconcile();
  /// The existing machines; records those that no longer exist. For a cluster that launches machines at the same time.
  std::vector<Machine> observe();

  /// Launches a machine. The request is recorded before the provider is asked. Throws ProviderError.
  Machine launch(const NodeType& type, bool spot, bool head, const std::string& token = new_token());
  /// Terminates machines. `wait`: returns only when the provider no longer lists them.
  void terminate(const std::vector<Machine>& machines, const std::string& why, bool wait = true);
  /// Waits until the machine runs and has an address, and reports to the user what it is waiting for. If the provider
  /// cannot be asked for a while, it is asked again. Throws CannotStart if the machine cannot come up as it was made.
  Machine await_address(const Machine& machine);
  /// Sets the machine up as the file says. Steps that were done before are not repeated.
  MachineReport set_up(const Machine& machine, const UpOptions& options = {}) {
    return access_.set_up(*this, machine, options);
  }

  /// Launches and sets up the head and the minimum number of workers. If there is no capacity, the launch is retried
  /// for as long as a machine may take to come up. Returns one report per machine. Failed machines are kept for the
  /// next up(), except those that were made and never answered: they are terminated, so that the next up() makes new
  /// ones.
  std::vector<MachineReport> up(const UpOptions& options = {});
  /// Terminates the machines and returns how many there were. Repeats until the provider lists none.
  int down(const DownOptions& options = {});

  void say(const std::string& line) const;
  void check_cancelled() const;
  bool cancelled() const { return hooks_.stop.stop_requested(); }
  const std::stop_token& stop() const { return hooks_.stop; }
  /// Replaces the stop token. No operation may be in progress on another thread.
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
  struct State;
  std::unique_ptr<State> state_;
};

/// The machines and the costs as `status` shows them; read-only. Takes no lock.
struct ClusterView {
  std::vector<MachineStatus> machines;
  Ledger ledger;
  CostReport cost;
  std::string driver;  ///< the driver that manages the cluster now; empty: none
  std::string error;   ///< why the provider could not be asked
};
ClusterView view_cluster(const ClusterConfig& config);
/// As above, with a provider of the caller.
ClusterView view_cluster(const ClusterConfig& config, AnyProvider provider);

/// The name of a machine as a host that trials are placed on.
std::string host_name(const ClusterConfig& config, const Machine& machine);

/// The setup commands of this machine's role and type, without those of all machines.
const std::vector<std::string>& role_commands(const ClusterConfig& config, const Machine& machine);

/// A fingerprint of what the file says about setting up such a machine: its commands, and the target paths of its
/// files, but not the contents of the files.
std::string setup_fingerprint(const ClusterConfig& config, const Machine& machine);
/// Why a machine is not set up as the file says, as text for the user: its set-up failed or used a different file.
/// Empty if it is set up correctly, or if this computer has no record of its set-up.
std::string setup_problem(const ClusterConfig& config, const Machine& machine);

/// The head of a running cluster. Error of kind `usage` if there is none.
Machine find_head(const ClusterConfig& config);
Machine find_head(const ClusterConfig& config, AnyProvider provider);

}  // namespace hypertune::inline v0::cluster
