// Autoscaler: which machines a cluster should have, decided from its queue of trials. No I/O and no clock.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/cluster/packing.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::cluster {

/// What the trials of an experiment ask for now.
struct Demand {
  std::vector<TrialShape> pending;                        ///< that wait for a place
  std::map<std::string, std::vector<Resources>> running;  ///< on machines, by token
  /// Drained machines of which the executor has not heard yet: a trial may still be placed there.
  std::set<std::string> leaving = {};
};

struct AutoscalerOptions {
  std::vector<NodeType> types;
  std::size_t head_type = 0;
  int min_workers = 0, max_workers = 0;
  double upscaling_speed = 1;  ///< machines being launched at once: max(5, this times those that are there)
  Seconds idle_timeout = 300;
  Seconds grow_delay = 1;                  ///< a need must have lasted for so long before a machine is launched for it
  Seconds launch_timeout = 900;            ///< from launch until it must be ready
  Seconds backoff = 5, max_backoff = 600;  ///< after a failed launch of a kind: doubled each time
};
AutoscalerOptions autoscaler_options(const ClusterConfig& config);

/// What is to be done. Machines are named by their token, which the autoscaler is told with machine_added() for those
/// that were there before, and gets with launching() for those it asked for.
struct LaunchMachine {
  std::size_t type = 0;
  bool spot = false;
};
/// Place no more trials there. Answered by what the next Demand says: idle, and it is terminated; else it is left.
struct DrainMachine {
  std::string token;
};
/// Trials may be placed there again.
struct UndrainMachine {
  std::string token;
};
struct TerminateMachine {
  std::string token, why;
};
using ScaleAction = std::variant<LaunchMachine, DrainMachine, UndrainMachine, TerminateMachine>;

struct ScaleDecision {
  std::vector<ScaleAction> actions;
  std::vector<std::string> log;       ///< why, one line each, only what has changed
  std::vector<Resources> impossible;  ///< shapes that no machine can ever hold
};

/// Feed it events, ask it from time to time. Every machine that it wants away is drained first and terminated only when
/// a Demand of a later decide() shows no trial on it: it never kills a busy one. Deterministic; not thread-safe.
class Autoscaler {
 public:
  explicit Autoscaler(AutoscalerOptions options);

  // Events.
  /// The launch that was asked for is under way as `token`.
  void launching(const std::string& token, const LaunchMachine& what, Seconds now);
  /// A machine that was there before; `ready`: trials can be placed on it.
  void machine_added(const std::string& token, std::size_t type, bool spot, bool head, bool ready, Seconds now);
  /// It takes trials now. What it has counts for its type where the file did not say.
  void ready(const std::string& token, const std::optional<Resources>& has, Seconds now);
  /// There is no machine: the kind of the failure decides what is tried instead, and when this again.
  void launch_failed(const std::string& token, ProviderFailure kind, const std::string& why, Seconds now);
  /// It is gone, whoever ended it.
  void gone(const std::string& token, Seconds now);

  ScaleDecision decide(const Demand& demand, Seconds now);
  /// When decide() will have something new to say though nothing happens; infinity: never.
  Seconds next_change(Seconds now) const;

  /// Why a trial that asks for this can never run, in one line; nullopt when it can.
  std::optional<std::string> why_never(const Resources& needs) const;
  int machines() const;  ///< workers, with those that are being launched
  /// The options in force: resources are those that machines were found to have.
  const AutoscalerOptions& options() const { return options_; }

 private:
  enum class Phase : std::uint8_t { launching, ready, draining, ending };
  struct Unit {
    std::size_t type = 0;
    bool spot = false, head = false;
    Phase phase = Phase::launching;
    Seconds since = 0;  // the phase
    std::optional<Seconds> idle_since;
    std::optional<Resources> has;  // its own, where measured
  };
  struct Block {
    int failures = 0;
    Seconds until = 0;
    std::string why;
    bool none_there = false;  // it was refused; else a call failed, or a machine did
  };
  struct Option {
    std::size_t type = 0;
    bool spot = false;
    double price = 0;
  };
  using Units = std::map<std::string, Unit>;

  bool known(std::size_t type) const { return options_.types[type].resources_known; }
  int count(std::size_t type) const;
  Room room_of(const Unit& unit) const;
  std::vector<Option> choices(Seconds now) const;
  double price_of(std::size_t type, bool spot) const;
  std::string describe(std::size_t type, bool spot) const;
  std::vector<Resources> unplaced(const Demand& demand, std::vector<Resources>& impossible);
  void note(ScaleDecision& decision, const std::string& key, const std::string& text);
  void grow(const std::vector<Resources>& waiting, Seconds now, ScaleDecision& decision);
  void keep_minimum(Seconds now, ScaleDecision& decision);
  void shrink(const Demand& demand, Seconds now, ScaleDecision& decision);
  bool wanted_by(const Unit& unit, const std::vector<Resources>& waiting) const;
  int launch_room() const;

  AutoscalerOptions options_;
  Units units_;
  std::map<std::pair<std::size_t, bool>, Block> blocks_;
  std::vector<LaunchMachine> asked_;  // that launching() has not taken up yet
  std::optional<Seconds> need_since_;
  std::map<std::string, std::string> noted_;  // the last line of each kind
  bool priced_ = false;
};

}  // namespace hypertune::inline v0::cluster
