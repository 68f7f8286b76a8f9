// Placement: which host, cores and devices a trial gets.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/group_network.hpp>
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

/// Accounts for what hosts have and trials hold. Amounts are kept in millionths, so that a fraction given and taken
/// back a million times leaves nothing behind. A trial goes to the host of which the smallest share is taken (where
/// trials ask for nothing that is counted: to the one with the fewest for its cores), the first one of several. Placing
/// and releasing cost O(log hosts) as long as successive requests are alike. No I/O, not thread-safe.
class Placement {
 public:
  using Excluded = std::set<std::string>;

  explicit Placement(const std::vector<Host>& hosts, const GroupOptions& group = {}) : network_(group) {
    for (const auto& host : hosts) add_host(host);
  }

  /// Adds a host; returns its index.
  int add_host(const Host& host);
  /// Takes a host out: nothing is placed there until restore_host(). What is held there is still to be released.
  /// `for_good`: it is not counted on any more. `why`: for people. `removed`: somebody has taken it away; it may come
  /// back, but is not worth waiting for.
  void remove_host(int host, bool for_good = false, std::string why = {}, bool removed = false);
  void restore_host(int host);
  /// What a host has is known only now, or has changed while it was away. Nothing is changed while something is held
  /// there.
  void describe_host(int host, const Resources& total);
  /// What addresses a host has is known only now, or has changed. What is held there stays.
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

  /// A slot for `request` on the host with the smallest load that has room; nullopt when none has now.
  std::optional<Slot> place(const Resources& request, const Excluded& excluded = {});
  /// Slots for `workers.min` to `workers.max` workers that need `each`, as many as there is room for: all of them or
  /// none, so that a trial holds nothing while it waits. `beside`: hosts of workers that these join, which are
  /// preferred or avoided as the strategy says. On several hosts only where these reach each other.
  std::vector<Slot> place_all(const Resources& each, const Workers& workers, const Excluded& excluded = {},
                              const std::vector<int>& beside = {});
  /// A slot on the host called `name`, for a trial that is there already (the host itself may be lost by now).
  std::optional<Slot> place_on(std::string_view name, const Resources& request) {
    const auto host = find_host(name);
    return host ? take(*host, request, amounts(request)) : std::nullopt;
  }

  void release(const Slot& slot);

  /// What the hosts that are there have, all together, and what of it is in use.
  struct Usage {
    double cpus = 0, gpus = 0, cpus_used = 0, gpus_used = 0;
    friend bool operator==(const Usage&, const Usage&) = default;
  };
  Usage usage() const {
    const auto real = [](std::int64_t amount) { return static_cast<double>(amount) / unit; };
    return {real(total_.cpus), real(total_.gpus), real(total_.cpus - free_.cpus), real(total_.gpus - free_.gpus)};
  }

  /// Whether some host could hold `request` if it were empty; one that is lost, but not for good, may come back.
  bool possible(const Resources& request, const Excluded& excluded = {}) const {
    return possible(request, Workers{}, excluded);
  }
  bool possible(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const;

  /// The same without hosts of which it has been said again and again that they are gone: whether it is worth while to
  /// wait for those that are not `excluded`.
  bool worth_waiting(const Resources& each, const Workers& workers, const Excluded& excluded) const;

  /// One sentence why `request` is not placed now, or can never be. Empty when there is room.
  std::string why_not(const Resources& request, const Excluded& excluded = {}) const;

  /// The same of several workers that need `each`.
  std::string why_not(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const;

  /// About how many trials like `request` run at once.
  int about(const Resources& request, const Workers& workers = {}) const {
    return room(request, Workers{}, [](const HostState& host) { return !host.gone; }) / workers.min;
  }

 private:
  static constexpr std::int64_t unit = 1'000'000;
  struct Amounts {
    std::int64_t cpus = 0, gpus = 0, memory = 0;  // memory in bytes; a host's 0 is "not accounted for"
    std::map<std::string, std::int64_t> custom;
    friend bool operator==(const Amounts&, const Amounts&) = default;
  };
  struct HostState {
    std::string name;
    Amounts total, free;
    std::vector<int> cores;             // free ones, the lowest last
    std::vector<std::int64_t> devices;  // what is free of each GPU
    std::int64_t trials = 0;            // that hold something of it
    int slots = 0;                      // for so many of them at most; 0: any number
    bool gone = false, for_good = false;
    bool unknown = false;  // what it has; until it is there
    int missed = 0;        // how often it has been said to be gone since it was there
    bool awaited = false;  // it was not there when it was added, and nothing has been said of it since
    bool removed = false;  // it was taken away by somebody
    bool met = false;      // it has been there
    std::string why = {};  // it is gone
  };

  // Of a host: the largest share of anything it has that is taken, then its trials for a core.
  using Load = std::pair<double, double>;
  static Load load(const HostState& host);
  // Its load may change only while it is closed.
  void open(int host) {
    open_.emplace(load(at(host)), host);
    if (ranked_) rank_host(host);
  }
  bool close(int host);
  // What is asked for now: hosts that were too full for the last request may do for this one.
  void shape(const Resources& request);
  // Until then the hosts are also kept by their room for workers like these.
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

  // As if all hosts reached each other.
  std::vector<Slot> place_on_any(const Resources& each, const Workers& workers, const Excluded& excluded,
                                 const std::vector<int>& beside);

  // How many workers would be placed, by the hosts as they are ranked.
  int room_now(Strategy strategy, const Excluded& excluded, const std::vector<int>& beside) const;
  static constexpr int max_room = 1'000'000;
  static int bounded(std::int64_t room) { return static_cast<int>(std::min<std::int64_t>(room, max_room)); }
  // How many workers the hosts that `counts` could hold as the strategy asks, `enough` of them, if they were empty, or
  // now. Of a trial of several workers also: and which reach each other.
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
  // How many workers one host holds, with what is free there or with all it has.
  static int capacity(const HostState& host, const Amounts& need, bool now);
  void count(int host, int sign);

  // Why hosts are lost, a few of them; or those that are for good.
  std::string losses(const char* before, bool for_good = false) const;
  // Nobody can be lost who was never there.
  bool has_lost_host() const {
    return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.gone && host.met; });
  }
  std::string waits_for_host() const;

  static std::int64_t fixed(double amount) {
    if (!(amount >= 0) || amount > 1e12)
      fail(Errc::usage, "a resource of {} makes no sense: it must be 0 or more", amount);
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

  // Which devices would serve: whole ones, or the fullest that still has the fraction.
  static std::optional<std::vector<int>> devices_for(const HostState& host, std::int64_t gpus);

  std::optional<Slot> take(int index, const Resources& request, const Amounts& need);

  HostState& at(int host) { return hosts_.at(static_cast<std::size_t>(host)); }

  std::vector<HostState> hosts_;
  GroupNetwork network_;
  std::set<std::pair<Load, int>> open_;  // hosts that may have room for a request like the last one
  std::optional<Amounts> ranked_;        // where workers are placed together: what each needs
  std::set<std::pair<int, int>> rooms_;  // … the hosts by the number of them that they have room for, if any
  std::int64_t room_ = 0;                // … and for how many there is room on all
  Amounts total_, free_;                 // of the hosts that are there: cpus and gpus
  std::optional<Resources> last_;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/execute/impl/placement.hpp>
#include <hypertune/execute/impl/placement_reasons.hpp>
#endif
