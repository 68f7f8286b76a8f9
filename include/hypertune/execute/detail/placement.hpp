// Placement: assigns hosts, cores and devices to trials.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/detail/group/group_network.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Keeps account of the resources of hosts and of what trials hold. Amounts are integers in millionths, so that
/// fractions that are taken and released a million times leave no rounding error. A trial goes to the host with the
/// smallest used share of resources (if trials ask for nothing that is accounted for: to the host with the fewest
/// trials per core); the first of several such hosts. Placing and releasing cost O(log hosts) as long as successive
/// requests are equal. No I/O, not thread-safe.
class Placement {
 public:
  using Excluded = std::set<std::string>;

  explicit Placement(const std::vector<Host>& hosts, const GroupOptions& group = {}) : network_(group) {
    for (const auto& host : hosts) add_host(host);
  }

  /// Adds a host; returns its index.
  int add_host(const Host& host);
  /// Marks a host as gone: nothing is placed there until restore_host(). Slots held there still have to be released.
  /// `for_good`: it is not expected back. `why`: for messages. `removed`: the user has taken it away; it may come back
  /// but is not worth waiting for.
  void remove_host(int host, bool for_good = false, std::string why = {}, bool removed = false);
  void restore_host(int host);
  /// Sets a host's resources, which have become known or have changed while it was away. Does nothing while slots are
  /// held there.
  void describe_host(int host, const Resources& total);
  /// Sets a host's addresses, which have become known or have changed. Slots held there are kept.
  void locate_host(int host, const std::vector<std::string>& addresses) { network_.describe(at(host).name, addresses); }
  const GroupNetwork& network() const { return network_; }
  std::size_t size() const { return hosts_.size(); }
  bool awaited(int host) const { return hosts_.at(static_cast<std::size_t>(host)).awaited; }
  bool gone(int host) const { return hosts_.at(static_cast<std::size_t>(host)).gone; }
  std::optional<int> find_host(std::string_view name) const {
    for (std::size_t host = 0; host < hosts_.size(); ++host)
      if (hosts_[host].name == name) return static_cast<int>(host);
    return std::nullopt;
  }
  const std::string& host_name(int host) const { return hosts_.at(static_cast<std::size_t>(host)).name; }

  /// A slot for `request` on the least loaded host that has room; nullopt if none has room now.
  std::optional<Slot> place(const Resources& request, const Excluded& excluded = {});
  /// Slots for `workers.min` to `workers.max` workers that need `each`, as many as there is room for. Empty if there is
  /// no room for `workers.min`, so that a trial holds nothing while it waits. `beside`: hosts of existing workers that
  /// these join; they are preferred or avoided, depending on the strategy. The workers are on several hosts only if
  /// these reach each other.
  std::vector<Slot> place_all(const Resources& each, const Workers& workers, const Excluded& excluded = {},
                              const std::vector<int>& beside = {});
  /// A slot on the host `name`, for a trial that is there already (even if the host is lost by now).
  std::optional<Slot> place_on(std::string_view name, const Resources& request) {
    const auto host = find_host(name);
    return host ? take(*host, request, amounts(request)) : std::nullopt;
  }

  void release(const Slot& slot);

  /// The total resources of the hosts that are there, and what of them is in use.
  struct Usage {
    double cpus = 0, gpus = 0, cpus_used = 0, gpus_used = 0;
    friend bool operator==(const Usage&, const Usage&) = default;
  };
  Usage usage() const {
    const auto real = [](std::int64_t amount) { return static_cast<double>(amount) / unit; };
    return {real(total_.cpus), real(total_.gpus), real(total_.cpus - free_.cpus), real(total_.gpus - free_.gpus)};
  }

  /// Whether some host could hold `request` if it were empty. Hosts that are lost count unless they are lost for good.
  bool possible(const Resources& request, const Excluded& excluded = {}) const {
    return possible(request, Workers{}, excluded);
  }
  bool possible(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const;

  /// The same, but hosts that were reported as gone again and again, or were removed, do not count: whether it is worth
  /// waiting for the hosts that are not `excluded`.
  bool worth_waiting(const Resources& each, const Workers& workers, const Excluded& excluded) const;

  /// One sentence why `request` is not placed now, or can never be. Empty if there is room.
  std::string why_not(const Resources& request, const Excluded& excluded = {}) const;

  /// The same for several workers that need `each`.
  std::string why_not(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const;

  /// About how many trials with this request can run at once.
  int about(const Resources& request, const Workers& workers = {}) const {
    return room(request, Workers{}, [](const HostState& host) { return !host.gone; }) / workers.min;
  }

 private:
  static constexpr std::int64_t unit = 1'000'000;
  struct Amounts {
    std::int64_t cpus = 0, gpus = 0, memory = 0;  // memory in bytes; 0 on a host: not accounted for
    std::map<std::string, std::int64_t> custom;
    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  struct HostState {
    std::string name;
    Amounts total, free;
    std::vector<int> cores;             // free cores, the lowest last
    std::vector<std::int64_t> devices;  // the free part of each GPU
    std::int64_t trials = 0;            // number of slots held
    int slots = 0;                      // maximum of `trials`; 0: no limit
    bool gone = false, for_good = false;
    bool unknown = false;  // its resources are unknown until it is there
    int missed = 0;        // how often it was reported as gone since it was last there
    bool awaited = false;  // it was not there when it was added, and was not reported since
    bool removed = false;  // the user has taken it away
    bool met = false;      // it has been there at least once
    std::string why = {};  // why it is gone
  };

  // The load of a host: the largest used share of any of its resources, then its trials per core.
  using Load = std::pair<double, double>;
  static Load load(const HostState& host);
  // A host's load may only change while the host is not in open_.
  void open(int host) {
    open_.emplace(load(at(host)), host);
    if (ranked_) rank_host(host);
  }
  bool close(int host);
  // Notes the present request. If it differs from the last one, hosts that were too full for that may have room for
  // this one.
  void shape(const Resources& request);
  // Ranks the hosts by their room for workers that need `each`, until a different request comes.
  void rank_hosts(const Resources& each);
  void rank_host(int host) {
    const int room = capacity(at(host), *ranked_, true);
    if (room > 0 && rooms_.emplace(room, host).second) room_ += room;
  }
  bool usable(int host, const Excluded& excluded) const {
    const HostState& state = hosts_[static_cast<std::size_t>(host)];
    return !state.gone && (excluded.empty() || !excluded.contains(state.name));
  }
  static bool packs(Strategy strategy) { return strategy == Strategy::pack || strategy == Strategy::strict_pack; }

  // place_all() as if all hosts reached each other.
  std::vector<Slot> place_on_any(const Resources& each, const Workers& workers, const Excluded& excluded,
                                 const std::vector<int>& beside);

  // How many workers there is room for now, by the ranked hosts.
  int room_now(Strategy strategy, const Excluded& excluded, const std::vector<int>& beside) const;
  static constexpr int max_room = 1'000'000;
  static int bounded(std::int64_t room) { return static_cast<int>(std::min<std::int64_t>(room, max_room)); }
  // How many workers the hosts for which `counts` is true could hold under the strategy, if they were empty or (`now`)
  // at present. Stops counting at `limit`. Workers of one trial must reach each other.
  template <class Counts>
  int room(const Resources& each, const Workers& workers, const Counts& counts, int limit = max_room,
           bool now = false) const {
    const Amounts need = amounts(each);
    std::int64_t sum = 0, alone = 0;
    for (const auto& host : hosts_) {
      if (sum >= limit) break;
      if (!counts(host)) continue;
      std::int64_t own = host.unknown ? max_room : capacity(host, need, now);
      if (workers.strategy == Strategy::strict_spread) own = std::min<std::int64_t>(own, 1);
      if (workers.several() && network_.is_outside(host.name))
        alone = std::max(alone, own);
      else
        sum = workers.strategy == Strategy::strict_pack ? std::max(sum, own) : sum + own;
    }
    return bounded(std::max(sum, alone));
  }
  // How many workers one host can hold, with its free resources (`now`) or with all of them.
  static int capacity(const HostState& host, const Amounts& need, bool now);
  void count(int host, int sign);

  // Why hosts are lost, for a few of them. `for_good`: only those that are lost for good.
  std::string losses(const char* before, bool for_good = false) const;
  // A host that was never there does not count as lost.
  bool has_lost_host() const {
    return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.gone && host.met; });
  }
  std::string waits_for_host() const;

  static std::int64_t fixed(double amount) {
    if (!(amount >= 0) || amount > 1e12) fail(Errc::usage, "a resource of {} is out of range (0 to 1e12)", amount);
    return std::llround(amount * unit);
  }
  static Amounts amounts(const Resources& r);
  static bool sound(const Resources& r) { return fixed(r.gpus) <= unit || fixed(r.gpus) % unit == 0; }

  static std::vector<std::string> missing(const Amounts& need, const Amounts& have);
  static std::vector<std::string> missing_now(const Amounts& need, const HostState& host);
  static bool full(const HostState& host) { return host.slots > 0 && host.trials >= host.slots; }
  static bool fits(const Amounts& need, const Amounts& have);
  static std::string amount_text(const Amounts& a, const std::string& name);
  static std::string list(const Amounts& need, const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " and ") + amount_text(need, name);
    return text;
  }
  static std::string has(const HostState& host, const std::vector<std::string>& names) {
    return "has " + list(host.total, names);
  }
  static std::string used(const HostState& host, const std::vector<std::string>& names);

  // The devices to use: whole ones, or for a fraction the fullest device that still has it.
  static std::optional<std::vector<int>> devices_for(const HostState& host, std::int64_t gpus);

  std::optional<Slot> take(int index, const Resources& request, const Amounts& need);

  HostState& at(int host) { return hosts_.at(static_cast<std::size_t>(host)); }

  std::vector<HostState> hosts_;
  GroupNetwork network_;
  std::set<std::pair<Load, int>> open_;  // hosts that may have room for a request like the last one
  std::optional<Amounts> ranked_;        // if groups are placed: what each worker needs
  std::set<std::pair<int, int>> rooms_;  // hosts with room, by the number of workers that they have room for
  std::int64_t room_ = 0;                // room for such workers on all hosts
  Amounts total_, free_;                 // cpus and gpus of the hosts that are there
  std::optional<Resources> last_;
};

}  // namespace hypertune::inline v0
