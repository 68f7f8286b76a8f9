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

/// What the trials of an experiment need now.
struct Demand {
  std::vector<TrialShape> pending;                        ///< trials that wait for a place
  std::map<std::string, std::vector<Resources>> running;  ///< what runs on each machine, by the machine's token
  /// Drained machines whose removal the executor has not processed yet: a trial may still be placed on them.
  std::set<std::string> unacknowledged_drains = {};
};

struct AutoscalerOptions {
  std::vector<NodeType> types;
  std::size_t head_type = 0;
  int min_workers = 0, max_workers = 0;
  double upscaling_speed = 1;              ///< limit of machines being launched at once: max(5, this times the workers)
  Seconds idle_timeout = 300;              ///< of types that have none
  Seconds grow_delay = 1;                  ///< a demand must have lasted this long before a machine is launched for it
  Seconds launch_timeout = 900;            ///< from the launch until the machine must be ready
  Seconds backoff = 5, max_backoff = 600;  ///< after a failed launch of a (type, market) pair; doubled each time
};
AutoscalerOptions autoscaler_options(const ClusterConfig& config);

/// Actions that decide() returns. They name machines by token. The caller passes the tokens to the autoscaler: with
/// machine_added() for machines that existed before, and with launching() for machines that the autoscaler asked for.
struct LaunchMachine {
  std::size_t type = 0;
  bool spot = false;
};
/// Place no more trials on this machine. The next Demand decides: if the machine is idle, it is terminated; if not, it
/// is kept.
struct DrainMachine {
  std::string token;
};
/// Trials may be placed on this machine again.
struct UndrainMachine {
  std::string token;
};
struct TerminateMachine {
  std::string token, why;
};
using ScaleAction = std::variant<LaunchMachine, DrainMachine, UndrainMachine, TerminateMachine>;

struct ScaleDecision {
  std::vector<ScaleAction> actions;
  std::vector<std::string> log;       ///< reasons, one line each; only those that have changed
  std::vector<Resources> impossible;  ///< shapes that no machine can ever hold
};

/// Receives events, and is asked for decisions from time to time. A machine is always drained first, and terminated
/// only when the Demand of a later decide() shows no trial on it, so a busy machine is never terminated. Deterministic;
/// not thread-safe.
class Autoscaler {
 public:
  explicit Autoscaler(AutoscalerOptions options);

  // Events.
  /// The launch that decide() asked for has been started as `token`.
  void launching(const std::string& token, const LaunchMachine& what, Seconds now);
  /// A machine that existed before. `ready`: trials can be placed on it.
  void machine_added(const std::string& token, std::size_t type, bool spot, bool head, bool ready, Seconds now);
  /// The machine takes trials now. If the file does not give the resources of its type, `has` is used for the type.
  void ready(const std::string& token, const std::optional<Resources>& has, Seconds now);
  /// The launch failed and there is no machine. The kind of the failure determines what is tried instead, and when this
  /// launch is tried again.
  void launch_failed(const std::string& token, ProviderFailure kind, const std::string& why, Seconds now);
  /// The machine no longer exists, whatever ended it.
  void gone(const std::string& token, Seconds now);

  ScaleDecision decide(const Demand& demand, Seconds now);
  /// The time at which decide() may return something new even without a further event; infinity: never.
  Seconds next_change(Seconds now) const;

  /// Why a trial with these needs can never run, in one line; nullopt if it can.
  std::optional<std::string> why_never(const Resources& needs) const;
  int machines() const;  ///< the number of workers, including those being launched
  /// The options in use. The resources of types that the file leaves open are those found on the first machine.
  const AutoscalerOptions& options() const { return options_; }

 private:
  enum class Phase : std::uint8_t { launching, ready, draining, ending };
  struct Unit {
    std::size_t type = 0;
    bool spot = false, head = false;
    Phase phase = Phase::launching;
    Seconds since = 0;  // start of the phase
    std::optional<Seconds> idle_since;
    std::optional<Resources> has;  // as measured on this machine
  };
  struct Block {
    int failures = 0;
    Seconds until = 0;
    std::string why;
    bool refused = false;  // the provider refused the launch; false: a call or a machine failed
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
  Seconds idle_timeout_of(const Unit& unit) const;
  std::string describe(std::size_t type, bool spot) const;
  std::vector<Resources> unplaced(const Demand& demand, std::vector<Resources>& impossible);
  /// Blocks launches after a failure for a time that doubles with each one; `at_least` seconds, up to the maximum.
  void block_launches(Block& block, const std::string& why, bool refused, Seconds now, double at_least = 0) const;
  void log_once(ScaleDecision& decision, const std::string& key, const std::string& text);
  void grow(const std::vector<Resources>& waiting, Seconds now, ScaleDecision& decision);
  void keep_minimum(Seconds now, ScaleDecision& decision);
  void shrink(const Demand& demand, Seconds now, ScaleDecision& decision);
  bool wanted_by(const Unit& unit, const std::vector<Resources>& waiting) const;
  int launch_room() const;

  AutoscalerOptions options_;
  Units units_;
  std::map<std::pair<std::size_t, bool>, Block> blocks_;
  std::vector<LaunchMachine> unacknowledged_;  // launches for which launching() has not been called yet
  std::optional<Seconds> need_since_;
  std::map<std::string, std::string> logged_;  // the last line logged for each key
  bool priced_ = false;
};

}  // namespace hypertune::inline v0::cluster
