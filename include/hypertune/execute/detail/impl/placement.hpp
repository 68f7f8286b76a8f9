// Placement: placing, releasing, and computing the room left.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/detail/placement.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace hypertune::inline v0 {

int Placement::add_host(const Host& host) {
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

void Placement::remove_host(int host, bool for_good, std::string why, bool removed) {
  if (!at(host).gone) count(host, -1);
  close(host);
  at(host).gone = true;
  at(host).awaited = false;
  ++at(host).missed;
  at(host).for_good = for_good;
  at(host).removed = removed;
  at(host).why = std::move(why);
}

void Placement::restore_host(int host) {
  const bool back = std::exchange(at(host).gone, false);
  at(host).for_good = at(host).awaited = at(host).removed = false;
  at(host).met = true;
  at(host).missed = 0;
  at(host).why.clear();
  if (back) count(host, 1);
  open(host);
}

void Placement::describe_host(int host, const Resources& total) {
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

std::optional<Slot> Placement::place(const Resources& request, const Excluded& excluded) {
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

std::vector<Slot> Placement::place_all(const Resources& each, const Workers& workers, const Excluded& excluded,
                                       const std::vector<int>& beside) {
  if (network_.outside().empty()) return place_on_any(each, workers, excluded, beside);
  Workers alone = workers;
  alone.strategy = Strategy::strict_pack;
  if (workers.strategy == Strategy::strict_spread) alone.max = 1;
  if (!beside.empty() && network_.is_outside(at(beside.front()).name))  // all workers are on that host, and stay there
    return workers.strategy == Strategy::strict_spread ? std::vector<Slot>()
                                                       : place_on_any(each, alone, excluded, beside);
  // If every host is outside, no two hosts share the workers of a trial.
  if (network_.outside().size() == hosts_.size()) return place_on_any(each, alone, excluded, beside);
  Excluded others = excluded;
  others.insert(network_.outside().begin(), network_.outside().end());
  if (!beside.empty()) return place_on_any(each, workers, others, beside);
  rank_hosts(each);
  const int together = std::min(workers.max, room_now(workers.strategy, others, {}));
  const int on_one = std::min(alone.max, room_now(alone.strategy, excluded, {}));
  const bool one = on_one > together || (on_one == together && packs(workers.strategy));
  return one ? place_on_any(each, alone, excluded, {}) : place_on_any(each, workers, others, {});
}

void Placement::release(const Slot& slot) {
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

bool Placement::possible(const Resources& each, const Workers& workers, const Excluded& excluded) const {
  return sound(each) &&
         room(
             each, workers, [&](const HostState& host) { return !host.for_good && !excluded.contains(host.name); },
             workers.min) >= workers.min;
}

bool Placement::worth_waiting(const Resources& each, const Workers& workers, const Excluded& excluded) const {
  constexpr int patience = 5;
  return sound(each) && room(
                            each, workers,
                            [&](const HostState& host) {
                              return !host.for_good && (!host.gone || (host.missed <= patience && !host.removed)) &&
                                     !excluded.contains(host.name);
                            },
                            workers.min) >= workers.min;
}

Placement::Load Placement::load(const HostState& host) {
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

bool Placement::close(int host) {
  if (ranked_) {
    const int room = capacity(at(host), *ranked_, true);
    room_ -= rooms_.erase({room, host}) > 0 ? room : 0;
  }
  return open_.erase({load(at(host)), host}) > 0;
}

void Placement::shape(const Resources& request) {
  if (last_ && *last_ == request) return;
  last_ = request;
  ranked_.reset();
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host)
    if (!at(host).gone) open(host);
}

void Placement::rank_hosts(const Resources& each) {
  shape(each);
  if (ranked_) return;
  ranked_ = amounts(each);
  rooms_.clear();
  room_ = 0;
  for (const auto& [load, host] : open_) rank_host(host);
}

std::vector<Slot> Placement::place_on_any(const Resources& each, const Workers& workers, const Excluded& excluded,
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
    // The host with the least room that is enough for all remaining workers; if there is none, the hosts with the most
    // room first.
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
    std::vector<int> served;  // one worker per host and round, the least loaded host first
    for (const int host : beside)
      if (close(host)) served.push_back(host);
    for (bool first = true, progress = false; (first || progress) && wanted() > 0; first = false) {
      progress = first && !served.empty();  // the hosts in `beside` get workers in the next round
      for (auto at = open_.begin(); at != open_.end() && wanted() > 0;) {
        const int host = at++->second;
        if (!usable(host, excluded)) continue;
        close(host);
        if (add(host)) served.push_back(host);  // otherwise it is too full until a slot is released there
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

int Placement::room_now(Strategy strategy, const Excluded& excluded, const std::vector<int>& beside) const {
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

int Placement::capacity(const HostState& host, const Amounts& need, bool now) {
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

void Placement::count(int host, int sign) {
  const HostState& state = at(host);
  total_.cpus += sign * state.total.cpus;
  total_.gpus += sign * state.total.gpus;
  free_.cpus += sign * state.free.cpus;
  free_.gpus += sign * state.free.gpus;
}

Placement::Amounts Placement::amounts(const Resources& r) {
  Amounts a;
  a.cpus = fixed(r.cpus);
  a.gpus = fixed(r.gpus);
  a.memory = static_cast<std::int64_t>(std::min<std::uint64_t>(r.memory, std::numeric_limits<std::int64_t>::max()));
  for (const auto& [name, amount] : r.custom) a.custom[name] = fixed(amount);
  return a;
}

bool Placement::fits(const Amounts& need, const Amounts& have) {
  if (need.cpus > have.cpus || need.gpus > have.gpus || (have.memory != 0 && need.memory > have.memory)) return false;
  for (const auto& [name, amount] : need.custom) {
    const auto found = have.custom.find(name);
    if (amount > 0 && (found == have.custom.end() || amount > found->second)) return false;
  }
  return true;
}

std::optional<std::vector<int>> Placement::devices_for(const HostState& host, std::int64_t gpus) {
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

std::optional<Slot> Placement::take(int index, const Resources& request, const Amounts& need) {
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
  // Whole cores are assigned by number if enough are left; trials with fractions are scheduled by the system.
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

}  // namespace hypertune::inline v0
