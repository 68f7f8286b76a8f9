// ClusterJournal: what was wanted of a provider, written down before it is asked, so that no machine is forgotten.
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

/// One wish for a machine and what became of it.
struct LedgerEntry {
  enum class State : std::uint8_t {
    wanted,   ///< the provider was, or was about to be, asked: there may be a machine
    there,    ///< there is one: `id`
    ending,   ///< it is to be terminated
    refused,  ///< there is none, and never was
    gone,     ///< there is none any more
  };
  std::string token, node_type, id, address, why;
  bool head = false, spot = false;
  State state = State::wanted;
  bool ready = false;     ///< set up
  bool answered = false;  ///< it was set up once: it did answer
  std::string setup;      ///< what it was set up by: setup_print(); empty: not known
  bool stopped = false;   ///< not running, but there
  double price = 0, on_demand = 0;
  WallTime wanted_at = 0, launched_at = 0, ended_at = 0;
  double paused = 0;  ///< seconds that it was stopped for
  WallTime stopped_at = 0;
  bool open() const { return state == State::wanted || state == State::there || state == State::ending; }
};

/// What the journal adds up to.
struct Ledger {
  std::vector<LedgerEntry> entries;  ///< in the order of their wishes
  int life = 0;                      ///< counts how often the cluster came up from nothing

  LedgerEntry* find(std::string_view token);
  const LedgerEntry* find_id(std::string_view id) const;
  /// The machine hours of entries since the cluster last came up from nothing, or all of them.
  CostReport cost(WallTime now, const std::string& currency, bool all = false) const;
  std::vector<std::pair<std::size_t, int>> lives;  ///< first entry of each
};

/// Where the state of clusters is kept: $HYPERTUNE_STATE, or hypertune/ below $XDG_STATE_HOME (~/.local/state).
std::filesystem::path state_root();
std::filesystem::path cluster_state(const std::string& name);

/// The folder of one cluster on this machine, held by one driver at a time. Each record is on the disk when its
/// function returns. A torn last line, which a crash leaves, is cut off. Thread-safe.
class ClusterJournal {
 public:
  /// Takes the lock. Error of kind `busy` that names the other driver.
  explicit ClusterJournal(std::filesystem::path folder);
  ~ClusterJournal();
  ClusterJournal(const ClusterJournal&) = delete;
  ClusterJournal& operator=(const ClusterJournal&) = delete;

  /// Reads without the lock, for status: what is there now.
  static Ledger read(const std::filesystem::path& folder);
  /// Who holds the lock of a folder now: "process 123 on host"; empty: nobody.
  static std::string driver_of(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  Ledger ledger() const;

  void want(const LaunchRequest& request, double price, double on_demand);
  void have(const Machine& machine);
  void refused(std::string_view token, std::string_view why);
  /// It is set up, by what has this setup_print().
  void ready(std::string_view token, std::string_view setup = {});
  /// It is to be set up anew: what it had counts no more, until it is ready() again.
  void unready(std::string_view token);
  void ending(std::string_view token, std::string_view why);
  void gone(std::string_view token);
  void stopped(std::string_view token);
  void started(std::string_view token);
  /// The driver learns of a machine that its journal does not know.
  void adopt(const Machine& machine, double price, double on_demand);

 private:
  struct Impl;
  void append(const std::string& line);
  std::filesystem::path folder_;
  std::unique_ptr<Impl> impl_;
};

/// A name for a wish that nobody else will think of: 26 letters and digits.
std::string new_token();

}  // namespace hypertune::inline v0::cluster
