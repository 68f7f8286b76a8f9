// ClusterJournal: records each request to a provider before it is made, so that no machine is forgotten.
#pragma once

#include <hypertune/cluster/cost.hpp>
#include <hypertune/cluster/machine.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Seconds since 1970.
using WallTime = double;
WallTime wall_now();

/// One requested machine and its state.
struct LedgerEntry {
  enum class State : std::uint8_t {
    requested,  ///< the provider was asked, or was about to be: the machine may exist
    exists,     ///< the machine exists and has an `id`
    ending,     ///< the machine is to be terminated
    refused,    ///< the machine was never made
    gone,       ///< the machine no longer exists
  };
  std::string token, node_type, id, address, why;
  bool head = false, spot = false;
  State state = State::requested;
  bool ready = false;     ///< set up
  bool answered = false;  ///< it has been set up at least once, so it did answer
  std::string setup;      ///< setup_fingerprint() at its set-up; empty: not known
  bool stopped = false;   ///< stopped, but not terminated
  double price = 0, on_demand = 0;
  WallTime requested_at = 0, launched_at = 0, ended_at = 0;
  double paused = 0;  ///< seconds for which it was stopped
  WallTime stopped_at = 0;
  bool open() const { return state == State::requested || state == State::exists || state == State::ending; }
};

/// The current state, computed from the records of the journal.
struct Ledger {
  std::vector<LedgerEntry> entries;  ///< in the order of the requests
  int generation = 0;                ///< how often the cluster was started from no machines

  LedgerEntry* find(std::string_view token);
  const LedgerEntry* find_id(std::string_view id) const;
  /// The machine hours since the cluster last had no machines, or of all entries (`all`).
  CostReport cost(WallTime now, const std::string& currency, bool all = false) const;
  std::vector<std::pair<std::size_t, int>> generations;  ///< for each generation, the index of its first entry
};

/// The folder for the state of clusters: $HYPERTUNE_STATE, or hypertune/ below $XDG_STATE_HOME (~/.local/state).
std::filesystem::path state_root();
std::filesystem::path cluster_state(const std::string& name);

/// The journal in the state folder of one cluster on this machine, locked by one driver at a time. Each function that
/// records returns after the record is on disk. An incomplete last line, left by a crash, is removed. Thread-safe.
class ClusterJournal {
 public:
  /// Takes the lock. Error of kind `busy` that names the other driver.
  explicit ClusterJournal(std::filesystem::path folder);
  ~ClusterJournal();
  ClusterJournal(const ClusterJournal&) = delete;
  ClusterJournal& operator=(const ClusterJournal&) = delete;

  /// Reads the current state without the lock, for status.
  static Ledger read(const std::filesystem::path& folder);
  /// The process that holds the lock of a folder: "process 123 on host"; empty: none.
  static std::string driver_of(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  Ledger ledger() const;

  void requested(const LaunchRequest& request, double price, double on_demand);
  void created(const Machine& machine);
  void refused(std::string_view token, std::string_view why);
  /// The machine is set up. `setup`: its setup_fingerprint().
  void ready(std::string_view token, std::string_view setup = {});
  /// The machine is to be set up again; its earlier set-up is not valid until the next ready().
  void unready(std::string_view token);
  void ending(std::string_view token, std::string_view why);
  void gone(std::string_view token);
  void stopped(std::string_view token);
  void started(std::string_view token);
  /// Records a machine that exists but is not in the journal.
  void adopt(const Machine& machine, double price, double on_demand);

 private:
  struct State;
  void append(const std::string& line);
  std::filesystem::path folder_;
  std::unique_ptr<State> state_;
};

/// A unique token for a request: "ht-" and 25 random letters and digits.
std::string new_token();

}  // namespace hypertune::inline v0::cluster
