// Placement: which host, cores and devices a trial gets.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/group_network.hpp>
#include <hypertune/execute/host_text.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
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

  /// `network`: by which workers of one trial on several hosts reach each other; empty: none is named.
  explicit Placement(const std::vector<Host>& hosts, std::string network = {}) : network_(std::move(network)) {
    for (const auto& host : hosts) add_host(host);
  }

  /// Adds a host; returns its index.
  int add_host(const Host& host) {
    HostState state;
    state.name = host.name;
    state.total = state.free = amounts(host.total);
    state.slots = host.slots;
    if (!(host.total.cpus >= 0 && host.total.gpus >= 0))
      fail(Errc::usage, "host '{}': cpus and gpus must be 0 or more", host.name);
    const auto cores = static_cast<int>(std::min(host.total.cpus, 4096.0));
    for (int core = cores - 1; core >= 0; --core) state.cores.push_back(core);
    state.devices.assign(static_cast<std::size_t>(std::min(host.total.gpus, 4096.0)), unit);
    hosts_.push_back(std::move(state));
    network_.describe(host.name, host.addresses);
    const int index = static_cast<int>(hosts_.size()) - 1;
    count(index, 1);
    open(index);
    at(index).met = host.presence == Presence::there;
    if (host.presence != Presence::there) {
      remove_host(index);
      at(index).unknown = host.presence == Presence::unknown;
      at(index).awaited = true;
      at(index).missed = 0;
    }
    return index;
  }
  /// Takes a host out: nothing is placed there until restore_host(). What is held there is still to be released.
  /// `for_good`: it is not counted on any more. `why`: for people. `removed`: somebody has taken it away; it may come
  /// back, but is not worth waiting for.
  void remove_host(int host, bool for_good = false, std::string why = {}, bool removed = false) {
    if (!at(host).gone) count(host, -1);
    close(host);
    at(host).gone = true;
    at(host).awaited = false;
    ++at(host).missed;
    at(host).for_good = for_good;
    at(host).removed = removed;
    at(host).why = std::move(why);
  }
  void restore_host(int host) {
    const bool back = std::exchange(at(host).gone, false);
    at(host).for_good = at(host).awaited = at(host).removed = false;
    at(host).met = true;
    at(host).missed = 0;
    at(host).why.clear();
    if (back) count(host, 1);
    open(host);
  }
  /// What a host has is known only now, or has changed while it was away. Nothing is changed while something is held
  /// there.
  void describe_host(int host, const Resources& total) {
    HostState& state = at(host);
    if (state.free != state.total) return;
    if (!state.gone) count(host, -1);
    close(host);
    Placement fresh({Host{.name = state.name, .total = total, .slots = state.slots}});
    HostState& now = fresh.at(0);
    now.trials = state.trials;
    now.gone = state.gone;
    now.for_good = state.for_good;
    now.met = state.met;
    now.why = state.why;
    state = std::move(now);
    if (!state.gone) {
      count(host, 1);
      open(host);
    }
    last_.reset();
  }
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
  std::optional<Slot> place(const Resources& request, const Excluded& excluded = {}) {
    shape(request);
    const Amounts need = amounts(request);
    for (auto it = open_.begin(); it != open_.end();) {
      const int host = it->second;
      if (!excluded.empty() && excluded.contains(at(host).name)) {
        ++it;
        continue;
      }
      if (auto slot = take(host, request, need)) return slot;
      it = open_.erase(it);  // too full for requests like this one until something is released there
    }
    return std::nullopt;
  }
  /// Slots for `workers.min` to `workers.max` workers that need `each`, as many as there is room for: all of them or
  /// none, so that a trial holds nothing while it waits. `beside`: hosts of workers that these join, which are
  /// preferred or avoided as the strategy says. On several hosts only where these reach each other.
  std::vector<Slot> place_all(const Resources& each, const Workers& workers, const Excluded& excluded = {},
                              const std::vector<int>& beside = {}) {
    if (network_.outside().empty()) return place_on_any(each, workers, excluded, beside);
    Workers alone = workers;
    alone.strategy = Strategy::strict_pack;
    if (workers.strategy == Strategy::strict_spread) alone.max = 1;
    if (!beside.empty() && network_.is_outside(at(beside.front()).name))  // these are there all, and stay so
      return workers.strategy == Strategy::strict_spread ? std::vector<Slot>()
                                                         : place_on_any(each, alone, excluded, beside);
    Excluded others = excluded;
    others.insert(network_.outside().begin(), network_.outside().end());
    if (!beside.empty()) return place_on_any(each, workers, others, beside);
    rank_hosts(each);
    const int together = std::min(workers.max, room_now(workers.strategy, others, {}));
    const int on_one = std::min(alone.max, room_now(alone.strategy, excluded, {}));
    const bool one = on_one > together || (on_one == together && packs(workers.strategy));
    return one ? place_on_any(each, alone, excluded, {}) : place_on_any(each, workers, others, {});
  }
  /// A slot on the host called `name`, for a trial that is there already (the host itself may be lost by now).
  std::optional<Slot> place_on(std::string_view name, const Resources& request) {
    const auto host = find_host(name);
    return host ? take(*host, request, amounts(request)) : std::nullopt;
  }

  void release(const Slot& slot) {
    auto& host = at(slot.host);
    close(slot.host);
    if (!host.gone) count(slot.host, -1);
    --host.trials;
    const Amounts given = amounts(slot.resources);
    host.free.cpus += given.cpus;
    if (host.total.memory > 0) host.free.memory += given.memory;
    for (const auto& [name, amount] : given.custom) host.free.custom[name] += amount;
    for (const int device : slot.gpus)
      host.devices[static_cast<std::size_t>(device)] += slot.gpus.size() == 1 ? std::min(given.gpus, unit) : unit;
    host.free.gpus += given.gpus;
    for (auto core = slot.cpus.rbegin(); core != slot.cpus.rend(); ++core) host.cores.push_back(*core);
    if (host.gone) return;
    count(slot.host, 1);
    open(slot.host);
  }

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
  bool possible(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const {
    return sound(each) &&
           room(
               each, workers, [&](const HostState& host) { return !host.for_good && !excluded.contains(host.name); },
               workers.min) >= workers.min;
  }

  /// The same without hosts of which it has been said again and again that they are gone: whether it is worth while to
  /// wait for those that are not `excluded`.
  bool worth_waiting(const Resources& each, const Workers& workers, const Excluded& excluded) const {
    constexpr int patience = 5;
    return sound(each) && room(
                              each, workers,
                              [&](const HostState& host) {
                                return !host.for_good && (!host.gone || (host.missed <= patience && !host.removed)) &&
                                       !excluded.contains(host.name);
                              },
                              workers.min) >= workers.min;
  }

  /// One sentence why `request` is not placed now, or can never be. Empty when there is room.
  std::string why_not(const Resources& request, const Excluded& excluded = {}) const {
    const Amounts need = amounts(request);
    if (!sound(request))
      return detail::format("{} gpus cannot be had: ask for a whole number, or for a fraction below 1 of one",
                            request.gpus);
    if (hosts_.empty()) return "there is no host";
    const HostState* widest = nullptr;
    const HostState* freest = nullptr;
    for (const auto& host : hosts_) {
      if (host.gone || excluded.contains(host.name)) continue;
      if (missing(need, host.total).empty() && missing_now(need, host).empty() && !full(host)) return "";
      if (widest == nullptr || missing(need, host.total).size() < missing(need, widest->total).size()) widest = &host;
      if (fits(need, host.total) && (freest == nullptr || host.free.cpus > freest->free.cpus)) freest = &host;
    }
    if (freest == nullptr && possible(request, excluded)) return waits_for_host() + losses(": ");
    if (widest == nullptr) return "every host is lost or excluded" + losses(": ");
    if (freest == nullptr)
      return detail::format("needs {}, which no host has (host '{}' {})", list(need, missing(need, widest->total)),
                            widest->name, has(*widest, missing(need, widest->total)));
    if (full(*freest))
      return detail::format("waits for a place: host '{}' has {} trial{} of {} at once", freest->name, freest->trials,
                            freest->trials == 1 ? "" : "s", freest->slots);
    const auto lacking = missing_now(need, *freest);
    return detail::format("waits for {}: on host '{}' {} in use", list(need, lacking), freest->name,
                          used(*freest, lacking));
  }

  /// The same of several workers that need `each`.
  std::string why_not(const Resources& each, const Workers& workers, const Excluded& excluded = {}) const {
    if (workers.min == 1 || !possible(each, excluded)) return why_not(each, excluded);
    const auto here = [&](const HostState& host) { return !host.gone && !excluded.contains(host.name); };
    const Amounts need = amounts(each);
    std::vector<std::string> names;
    if (need.cpus > 0) names.emplace_back("cpus");
    if (need.gpus > 0) names.emplace_back("gpus");
    if (need.memory > 0) names.emplace_back("memory");
    for (const auto& [name, amount] : need.custom) names.push_back(name);
    std::string own;
    for (const auto& name : names) {
      own += (own.empty() ? " with " : " and ") + amount_text(need, name);
      if (own.ends_with(" 1 cpus") || own.ends_with(" 1 gpus")) own.pop_back();
    }
    const std::string what = detail::format("{} workers{}{}", workers.min, own.empty() ? own : own + " each",
                                            workers.strategy == Strategy::strict_pack     ? " on one host"
                                            : workers.strategy == Strategy::strict_spread ? " on a host of its own each"
                                                                                          : "");
    const Workers apart{.strategy = workers.strategy};  // which need not reach each other
    if (!possible(each, workers, excluded)) {
      const auto counts = [&](const auto& host) { return !host.for_good && !excluded.contains(host.name); };
      const int most = room(each, workers, counts);
      if (room(each, apart, counts) < workers.min)
        return detail::format("needs {}, but the hosts have room for {}", what, most);
      return detail::format(
          "needs {}, but hosts that reach each other have room for {}: {}; name a network that all of them are in, as "
          "in `group: {{network: 10.1.0.0/16}}`",
          what, most, network_.why());
    }
    const int free = room(each, workers, here, max_room, true);
    if (free >= workers.min) return "";
    if (room(each, apart, here, max_room, true) >= workers.min)
      return detail::format("waits for {}: {} {} free on hosts that reach each other, as {}", what, free,
                            free == 1 ? "is" : "are", network_.why());
    return detail::format(
        "waits for {}: {} {} free{}", what, free, free == 1 ? "is" : "are",
        room(each, workers, here) >= workers.min ? "" : "; a host that is lost now must come back" + losses(": "));
  }

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
  static Load load(const HostState& host) {
    double share = 0;
    const auto take = [&](std::int64_t total, std::int64_t free) {
      if (total > 0) share = std::max(share, static_cast<double>(total - free) / static_cast<double>(total));
    };
    take(host.total.cpus, host.free.cpus);
    take(host.total.gpus, host.free.gpus);
    take(host.total.memory, host.free.memory);
    for (const auto& [name, total] : host.total.custom) take(total, host.free.custom.at(name));
    const double cores = std::max(1.0, static_cast<double>(host.total.cpus) / unit);
    return {share, static_cast<double>(host.trials) / cores};
  }
  // Its load may change only while it is closed.
  void open(int host) {
    open_.emplace(load(at(host)), host);
    if (ranked_) rank_host(host);
  }
  bool close(int host) {
    if (ranked_) {
      const int room = capacity(at(host), *ranked_, true);
      room_ -= rooms_.erase({room, host}) > 0 ? room : 0;
    }
    return open_.erase({load(at(host)), host}) > 0;
  }
  // What is asked for now: hosts that were too full for the last request may do for this one.
  void shape(const Resources& request) {
    if (last_ && *last_ == request) return;
    last_ = request;
    ranked_.reset();
    for (int host = 0; host < static_cast<int>(hosts_.size()); ++host)
      if (!at(host).gone) open(host);
  }
  // Until then the hosts are also kept by their room for workers like these.
  void rank_hosts(const Resources& each) {
    shape(each);
    if (ranked_) return;
    ranked_ = amounts(each);
    rooms_.clear();
    room_ = 0;
    for (const auto& [load, host] : open_) rank_host(host);
  }
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
                                 const std::vector<int>& beside) {
    rank_hosts(each);
    std::vector<Slot> slots;
    const int count = std::min(workers.max, room_now(workers.strategy, excluded, beside));
    if (count < workers.min || !sound(each)) return slots;
    slots.reserve(static_cast<std::size_t>(count));
    const auto wanted = [&] { return count - static_cast<int>(slots.size()); };
    const auto add = [&](int host) {
      auto slot = take(host, each, *ranked_);
      if (slot) slots.push_back(std::move(*slot));
      return slot.has_value();
    };
    const auto fill = [&](int host) {
      const auto before = wanted();
      while (wanted() > 0 && add(host)) {}
      return wanted() < before;
    };
    if (packs(workers.strategy)) {
      for (const int host : beside)
        if (usable(host, excluded)) fill(host);
      // The host where least would be left behind them all; where none has so much room, the largest ones first.
      const auto first_with = [&](int room) -> std::optional<int> {
        for (auto at = rooms_.lower_bound({room, -1}); at != rooms_.end(); ++at)
          if (usable(at->second, excluded)) return at->second;
        return std::nullopt;
      };
      while (wanted() > 0) {
        auto best = first_with(wanted());
        for (auto at = rooms_.rbegin(); at != rooms_.rend() && !best; ++at)
          if (usable(at->second, excluded)) best = first_with(at->first);
        if (!best || !fill(*best)) break;
      }
    } else {
      std::vector<int> served;  // one worker a host and round, the least loaded host first
      for (const int host : beside)
        if (close(host)) served.push_back(host);
      for (bool first = true, progress = false; (first || progress) && wanted() > 0; first = false) {
        progress = first && !served.empty();  // those that these join have a round yet to come
        for (auto at = open_.begin(); at != open_.end() && wanted() > 0;) {
          const int host = at++->second;
          if (!usable(host, excluded)) continue;
          close(host);
          if (add(host)) served.push_back(host);  // else it is too full until something is released there
          progress = true;
        }
        for (const int host : std::exchange(served, {})) open(host);
        if (workers.strategy == Strategy::strict_spread) break;
      }
      for (const int host : served) open(host);
    }
    if (wanted() > 0)
      for (const Slot& slot : std::exchange(slots, {})) release(slot);
    return slots;
  }

  // How many workers would be placed, by the hosts as they are ranked.
  int room_now(Strategy strategy, const Excluded& excluded, const std::vector<int>& beside) const {
    const auto joined = [&](int host) { return std::find(beside.begin(), beside.end(), host) != beside.end(); };
    if (strategy == Strategy::strict_pack)
      for (auto widest = rooms_.rbegin(); widest != rooms_.rend(); ++widest)
        if (usable(widest->second, excluded) && (beside.empty() || joined(widest->second))) return widest->first;
    if (strategy == Strategy::strict_pack) return 0;
    const bool apart = strategy == Strategy::strict_spread;
    if (!apart && excluded.empty()) return bounded(room_);
    std::int64_t sum = 0;
    for (const auto& [room, host] : rooms_)
      if (usable(host, excluded)) sum += !apart ? room : joined(host) ? 0 : 1;
    return bounded(sum);
  }
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
  static int capacity(const HostState& host, const Amounts& need, bool now) {
    const Amounts& have = now ? host.free : host.total;
    std::int64_t most = host.slots > 0 ? host.slots - (now ? host.trials : 0) : max_room;
    if (need.cpus > 0) most = std::min(most, have.cpus / need.cpus);
    if (need.memory > 0 && host.total.memory > 0) most = std::min(most, have.memory / need.memory);
    for (const auto& [name, amount] : need.custom) {
      const auto found = have.custom.find(name);
      if (amount > 0) most = std::min(most, found == have.custom.end() ? 0 : found->second / amount);
    }
    if (need.gpus > 0 && most > 0) {
      std::int64_t devices = 0, shares = 0;
      for (const std::int64_t free : host.devices) {
        devices += !now || free == unit;
        shares += (now ? free : unit) / need.gpus;
      }
      most = std::min(most, need.gpus < unit ? shares : devices / (need.gpus / unit));
    }
    return static_cast<int>(std::max<std::int64_t>(most, 0));
  }
  void count(int host, int sign) {
    const HostState& state = at(host);
    total_.cpus += sign * state.total.cpus;
    total_.gpus += sign * state.total.gpus;
    free_.cpus += sign * state.free.cpus;
    free_.gpus += sign * state.free.gpus;
  }

  // Why hosts are lost, a few of them.
  std::string losses(const char* before) const {
    constexpr std::size_t most = 3;
    detail::HostTroubles all;
    for (const auto& host : hosts_)
      if (host.gone && !host.why.empty()) all.emplace_back(host.name, host.why);
    return all.empty() ? std::string() : before + detail::host_troubles_text(all, most);
  }
  // Nobody can be lost who was never there.
  std::string waits_for_host() const {
    for (const auto& host : hosts_)
      if (host.gone && host.met) return "waits for a host that is lost now to come back";
    const bool workers =
        std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return detail::is_worker_name(host.name); });
    return workers ? "waits for a worker" : "waits for a host";
  }

  static std::int64_t fixed(double amount) {
    if (!(amount >= 0) || amount > 1e12)
      fail(Errc::usage, "a resource of {} makes no sense: it must be 0 or more", amount);
    return std::llround(amount * unit);
  }
  static Amounts amounts(const Resources& r) {
    Amounts a;
    a.cpus = fixed(r.cpus);
    a.gpus = fixed(r.gpus);
    a.memory = static_cast<std::int64_t>(std::min<std::uint64_t>(r.memory, std::numeric_limits<std::int64_t>::max()));
    for (const auto& [name, amount] : r.custom) a.custom[name] = fixed(amount);
    return a;
  }
  static bool sound(const Resources& r) { return fixed(r.gpus) <= unit || fixed(r.gpus) % unit == 0; }

  static std::vector<std::string> missing(const Amounts& need, const Amounts& have) {
    std::vector<std::string> names;
    if (need.cpus > have.cpus) names.emplace_back("cpus");
    if (need.gpus > have.gpus) names.emplace_back("gpus");
    if (have.memory != 0 && need.memory > have.memory) names.emplace_back("memory");
    for (const auto& [name, amount] : need.custom) {
      const auto found = have.custom.find(name);
      if (amount > 0 && (found == have.custom.end() || amount > found->second)) names.push_back(name);
    }
    return names;
  }
  static std::vector<std::string> missing_now(const Amounts& need, const HostState& host) {
    Amounts have = host.free;
    if (host.total.memory > 0 && need.memory > have.memory)
      have.memory = -1;  // nothing left is not "not accounted for"
    if (host.total.memory == 0) have.memory = 0;
    auto lacking = missing(need, have);
    if (lacking.empty() && need.gpus > 0 && !devices_for(host, need.gpus)) lacking.emplace_back("gpus");
    return lacking;
  }
  static bool full(const HostState& host) { return host.slots > 0 && host.trials >= host.slots; }
  static bool fits(const Amounts& need, const Amounts& have) {
    if (need.cpus > have.cpus || need.gpus > have.gpus || (have.memory != 0 && need.memory > have.memory)) return false;
    for (const auto& [name, amount] : need.custom) {
      const auto found = have.custom.find(name);
      if (amount > 0 && (found == have.custom.end() || amount > found->second)) return false;
    }
    return true;
  }
  static std::string amount_text(const Amounts& a, const std::string& name) {
    if (name == "memory") return detail::format("{} MiB of memory", a.memory >> 20U);
    const std::int64_t amount = name == "cpus"            ? a.cpus
                                : name == "gpus"          ? a.gpus
                                : a.custom.contains(name) ? a.custom.at(name)
                                                          : 0;
    return detail::format("{:g} {}", static_cast<double>(amount) / unit, name);
  }
  static std::string list(const Amounts& need, const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " and ") + amount_text(need, name);
    return text;
  }
  static std::string has(const HostState& host, const std::vector<std::string>& names) {
    return "has " + list(host.total, names);
  }
  static std::string used(const HostState& host, const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) {
      Amounts busy = host.total;
      busy.cpus -= host.free.cpus;
      busy.gpus -= host.free.gpus;
      busy.memory -= host.free.memory;
      for (auto& [key, amount] : busy.custom) amount -= host.free.custom.at(key);
      const std::string whole = amount_text(host.total, name);
      const std::string taken = amount_text(busy, name);
      text += detail::format("{}{} of {} are", text.empty() ? "" : ", ", taken.substr(0, taken.find(' ')), whole);
    }
    return text;
  }

  // Which devices would serve: whole ones, or the fullest that still has the fraction.
  static std::optional<std::vector<int>> devices_for(const HostState& host, std::int64_t gpus) {
    std::vector<int> chosen;
    if (gpus < unit) {
      int best = -1;
      for (int d = 0; d < static_cast<int>(host.devices.size()); ++d) {
        const auto free = host.devices[static_cast<std::size_t>(d)];
        if (free >= gpus && (best < 0 || free < host.devices[static_cast<std::size_t>(best)])) best = d;
      }
      if (best < 0) return std::nullopt;
      chosen.push_back(best);
      return chosen;
    }
    for (int d = 0; d < static_cast<int>(host.devices.size()) && static_cast<std::int64_t>(chosen.size()) < gpus / unit;
         ++d)
      if (host.devices[static_cast<std::size_t>(d)] == unit) chosen.push_back(d);
    if (static_cast<std::int64_t>(chosen.size()) < gpus / unit) return std::nullopt;
    return chosen;
  }

  std::optional<Slot> take(int index, const Resources& request, const Amounts& need) {
    auto& host = at(index);
    if (full(host)) return std::nullopt;
    if (host.total.memory == 0 && need.memory > 0) {  // memory is not accounted for on this host
      Amounts rest = need;
      rest.memory = 0;
      if (!fits(rest, host.free)) return std::nullopt;
    } else if (need.cpus > host.free.cpus || need.gpus > host.free.gpus || need.memory > host.free.memory) {
      return std::nullopt;
    }
    for (const auto& [name, amount] : need.custom) {
      const auto found = host.free.custom.find(name);
      if (amount > 0 && (found == host.free.custom.end() || amount > found->second)) return std::nullopt;
    }
    Slot slot;
    if (need.gpus > 0) {
      if (!sound(request)) return std::nullopt;
      auto devices = devices_for(host, need.gpus);
      if (!devices) return std::nullopt;
      slot.gpus = std::move(*devices);
    }
    // Whole cores are given by number where enough are left; fractions share what the system gives them.
    const auto cores = static_cast<std::size_t>(need.cpus / unit);
    if (need.cpus % unit == 0 && cores > 0 && cores <= host.cores.size()) {
      for (std::size_t i = 0; i < cores; ++i) {
        slot.cpus.push_back(host.cores.back());
        host.cores.pop_back();
      }
    }
    const bool was_open = close(index);
    if (!host.gone) count(index, -1);
    ++host.trials;
    for (const int device : slot.gpus) host.devices[static_cast<std::size_t>(device)] -= std::min(need.gpus, unit);
    host.free.cpus -= need.cpus;
    host.free.gpus -= need.gpus;
    if (host.total.memory > 0) host.free.memory -= need.memory;
    for (const auto& [name, amount] : need.custom) host.free.custom[name] -= amount;
    if (!host.gone) count(index, 1);
    if (was_open) open(index);
    slot.host = index;
    slot.host_name = host.name;
    slot.resources = request;
    return slot;
  }

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
