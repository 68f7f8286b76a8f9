// Autoscaler: decides which machines there should be.
#include <hypertune/cluster/autoscaler.hpp>
#include <hypertune/detail/stable_sort.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace hypertune::inline v0::cluster {

AutoscalerOptions autoscaler_options(const ClusterConfig& config) {
  AutoscalerOptions options;
  options.types = config.types;
  options.head_type = config.head_type;
  options.min_workers = config.min_workers;
  options.max_workers = config.max_workers;
  options.upscaling_speed = config.upscaling_speed;
  options.idle_timeout = config.idle_timeout;
  options.launch_timeout = config.provider.start_timeout + 900;  // plus time for the set-up
  return options;
}

Autoscaler::Autoscaler(AutoscalerOptions options) : options_(std::move(options)) {
  if (options_.types.empty()) fail(Errc::usage, "an autoscaler needs at least one type of machine");
  // If any price is missing, sizes are compared instead of prices: an incomplete price list would be misleading.
  priced_ = true;
  for (const auto& type : options_.types)
    if (type.max_workers > 0 && !(type.price > 0)) priced_ = false;
}

double Autoscaler::price_of(std::size_t index, bool spot) const {
  const auto& type = options_.types[index];
  if (priced_) {
    if (!spot) return type.price;
    return type.spot_price.value_or(type.price * 0.4);  // a typical spot price of the cloud providers
  }
  const double size = std::max(weight_of(type.resources), 0.01);
  return spot ? size * 0.4 : size;
}

Seconds Autoscaler::idle_timeout_of(const Unit& unit) const {
  return options_.types[unit.type].idle_timeout.value_or(options_.idle_timeout);
}

std::string Autoscaler::describe(std::size_t index, bool spot) const {
  const auto& type = options_.types[index];
  std::string text = type.name;
  if (spot) text += ", spot";
  const double price = spot ? type.spot_price.value_or(0) : type.price;
  return price > 0 ? fmt::format("{} at {:g}/h", text, price) : text;
}

int Autoscaler::count(std::size_t type) const {
  return static_cast<int>(std::count_if(units_.begin(), units_.end(), [&](const auto& entry) {
    return !entry.second.head && entry.second.type == type && entry.second.phase != Phase::ending;
  }));
}
int Autoscaler::machines() const {
  return static_cast<int>(std::count_if(units_.begin(), units_.end(), [](const auto& entry) {
    return !entry.second.head && entry.second.phase != Phase::ending;
  }));
}

Room Autoscaler::room_of(const Unit& unit) const {
  const auto& type = options_.types[unit.type];
  if (unit.has) return Room(*unit.has, true);
  return Room(type.resources, type.resources_known);
}

void Autoscaler::launching(const std::string& token, const LaunchMachine& what, Seconds now) {
  for (auto asked = unacknowledged_.begin(); asked != unacknowledged_.end(); ++asked)
    if (asked->type == what.type && asked->spot == what.spot) {
      unacknowledged_.erase(asked);
      break;
    }
  Unit unit;
  unit.type = what.type;
  unit.spot = what.spot;
  unit.since = now;
  units_[token] = std::move(unit);
}

void Autoscaler::machine_added(const std::string& token, std::size_t type, bool spot, bool head, bool is_ready,
                               Seconds now) {
  if (type >= options_.types.size()) fail(Errc::usage, "there is no node type number {}", type);
  Unit unit;
  unit.type = type;
  unit.spot = spot;
  unit.head = head;
  unit.phase = is_ready ? Phase::ready : Phase::launching;
  unit.since = now;
  units_[token] = std::move(unit);
}

void Autoscaler::ready(const std::string& token, const std::optional<Resources>& has, Seconds now) {
  const auto found = units_.find(token);
  if (found == units_.end() || found->second.phase == Phase::ending) return;
  auto& unit = found->second;
  if (unit.phase == Phase::launching) {
    unit.phase = Phase::ready;
    unit.since = now;
  }
  auto& type = options_.types[unit.type];
  if (has && !type.resources_known) {
    unit.has = has;
    if (!unit.head || unit.type != options_.head_type || options_.types.size() == 1 || type.max_workers > 0) {
      type.resources = *has;
      type.resources_known = true;
    }
  }
  blocks_.erase({unit.type, unit.spot});
}

void Autoscaler::launch_failed(const std::string& token, ProviderFailure kind, const std::string& why, Seconds now) {
  const auto found = units_.find(token);
  if (found == units_.end()) return;
  const auto key = std::pair(found->second.type, found->second.spot);
  const bool head = found->second.head;
  units_.erase(found);
  if (head) return;
  auto& block = blocks_[key];
  if (now >= block.until) block.failures = std::min(block.failures + 1, 40);  // failures at the same time count once
  const double at_least = kind == ProviderFailure::invalid ? 60 : 0;          // a shorter wait would not help
  block_launches(block, why, kind != ProviderFailure::failed, now, at_least);
}

void Autoscaler::block_launches(Block& block, const std::string& why, bool refused, Seconds now,
                                double at_least) const {
  const double wait = std::max(options_.backoff * std::pow(2.0, block.failures - 1), at_least);
  block.until = now + std::min(wait, options_.max_backoff);
  block.why = why;
  block.refused = refused;
}

void Autoscaler::gone(const std::string& token, Seconds) { units_.erase(token); }

std::optional<std::string> Autoscaler::why_never(const Resources& needs) const {
  const NodeType* largest = nullptr;
  for (const auto& [token, unit] : units_)
    if (unit.phase != Phase::ending) {
      Room room = room_of(unit);
      if (room.fits(needs)) return std::nullopt;
    }
  for (std::size_t i = 0; i < options_.types.size(); ++i) {
    const auto& type = options_.types[i];
    if ((type.max_workers <= 0 || options_.max_workers <= 0) && i != options_.head_type) continue;
    if (how_many(type.resources, type.resources_known, needs, 1) > 0) return std::nullopt;
    if (largest == nullptr || weight_of(type.resources) > weight_of(largest->resources)) largest = &type;
  }
  std::string asks = fmt::format("{:g} cpus", needs.cpus);
  if (needs.gpus > 0) asks += fmt::format(", {:g} gpus", needs.gpus);
  if (needs.memory > 0) asks += fmt::format(", {} MiB of memory", needs.memory >> 20U);
  for (const auto& [name, amount] : needs.custom) asks += fmt::format(", {:g} {}", amount, name);
  if (needs.gpus > 1 && needs.gpus != std::floor(needs.gpus))
    return fmt::format("a trial asks for {}: gpus must be whole, or a fraction below 1 of one", asks);
  if (largest == nullptr) return fmt::format("a trial asks for {}, but the cluster may have no machine at all", asks);
  std::string has = fmt::format("{:g} cpus, {:g} gpus", largest->resources.cpus, largest->resources.gpus);
  if (largest->resources.memory > 0) has += fmt::format(", {} MiB of memory", largest->resources.memory >> 20U);
  return fmt::format("a trial asks for {}, which no machine of available_node_types has (the largest, '{}', has {})",
                     asks, largest->name, has);
}

// The waiting trials that fit on no machine that exists or is being launched, largest first.
std::vector<Resources> Autoscaler::unplaced(const Demand& demand, std::vector<Resources>& impossible) {
  std::vector<Room> rooms;
  for (const auto& [token, unit] : units_) {
    if (unit.phase == Phase::ending || unit.phase == Phase::draining) continue;
    Room room = room_of(unit);
    if (const auto busy = demand.running.find(token); busy != demand.running.end())
      for (const auto& needs : busy->second)
        if (!room.take(needs)) room = Room(Resources{.cpus = 0});  // more than the machine has: nothing is free
    rooms.push_back(std::move(room));
  }
  for (const auto& asked : unacknowledged_)
    rooms.emplace_back(options_.types[asked.type].resources, options_.types[asked.type].resources_known);
  std::vector<TrialShape> shapes = demand.pending;
  hypertune::detail::stable_sort(shapes.begin(), shapes.end(), [](const TrialShape& a, const TrialShape& b) {
    return weight_of(a.needs) > weight_of(b.needs);
  });
  std::vector<Resources> waiting;
  for (const auto& shape : shapes) {
    if (shape.count <= 0) continue;
    if (why_never(shape.needs)) {
      impossible.push_back(shape.needs);
      continue;
    }
    std::size_t from = 0;  // rooms before this one are too full for the shape
    for (int i = 0; i < std::min(shape.count, 100'000); ++i) {
      while (from < rooms.size() && !rooms[from].fits(shape.needs)) ++from;
      if (from < rooms.size())
        rooms[from].take(shape.needs);
      else if (waiting.size() < 20'000)
        waiting.push_back(shape.needs);
    }
  }
  return waiting;
}

std::vector<Autoscaler::Option> Autoscaler::choices(Seconds now) const {
  std::vector<Option> all;
  for (std::size_t i = 0; i < options_.types.size(); ++i) {
    const auto& type = options_.types[i];
    if (type.max_workers <= 0) continue;
    for (const bool spot : {true, false}) {
      if (spot ? type.spot == Spot::never : type.spot == Spot::only) continue;
      if (const auto block = blocks_.find({i, spot}); block != blocks_.end() && now < block->second.until) continue;
      // On-demand only if spot machines of this type are not available now; a failed call does not show that.
      if (!spot && type.spot == Spot::prefer) {
        const auto block = blocks_.find({i, true});
        if (block == blocks_.end() || now >= block->second.until || !block->second.refused) continue;
      }
      all.push_back({i, spot, price_of(i, spot)});
    }
  }
  return all;
}

int Autoscaler::launch_room() const {
  int launching = static_cast<int>(unacknowledged_.size()), there = 0;
  for (const auto& [token, unit] : units_) {
    if (unit.head) continue;
    if (unit.phase == Phase::launching)
      ++launching;
    else if (unit.phase != Phase::ending)
      ++there;
  }
  const double most = std::max(5.0, std::ceil(options_.upscaling_speed * there));
  return static_cast<int>(std::min(most, 1e6)) - launching;
}

void Autoscaler::log_once(ScaleDecision& decision, const std::string& key, const std::string& text) {
  auto& last = logged_[key];
  if (last == text) return;
  last = text;
  if (!text.empty()) decision.log.push_back(text);
}

// Greedy: repeatedly launches the machine that holds the waiting trials at the lowest cost, relative to the cost of
// each trial alone on the machine type that is cheapest for it.
void Autoscaler::grow(const std::vector<Resources>& all, Seconds now, ScaleDecision& decision) {
  std::vector<Resources> waiting = all;
  const auto options = choices(now);
  std::map<std::pair<std::size_t, bool>, int> launched, serves;
  int room = launch_room();
  int workers = machines() + static_cast<int>(unacknowledged_.size());
  std::map<std::size_t, int> of_type;
  for (std::size_t i = 0; i < options_.types.size(); ++i)
    of_type[i] = count(i) + static_cast<int>(std::count_if(unacknowledged_.begin(), unacknowledged_.end(),
                                                           [&](const LaunchMachine& a) { return a.type == i; }));
  std::vector<std::pair<Resources, double>> fair;  // the minimum cost of one trial of each shape
  const auto fair_price = [&](const Resources& needs) {
    for (const auto& [shape, price] : fair)
      if (shape == needs) return price;
    double best = std::numeric_limits<double>::infinity();
    for (const auto& option : options) {
      const auto& type = options_.types[option.type];
      const int n = how_many(type.resources, type.resources_known, needs);
      if (n > 0) best = std::min(best, std::max(option.price, 1e-9) / n);
    }
    fair.emplace_back(needs, best);
    return best;
  };
  std::string_view held_back;
  while (!waiting.empty()) {
    if (workers >= options_.max_workers) {
      held_back = "max_workers";
      break;
    }
    if (room <= 0) {
      held_back = "upscaling_speed";
      break;
    }
    const Option* best = nullptr;
    double best_score = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> best_packed;
    for (const auto& option : options) {
      const auto& type = options_.types[option.type];
      if (of_type[option.type] >= type.max_workers) continue;
      Room machine(type.resources, type.resources_known);
      std::vector<std::size_t> packed;
      double worth = 0;
      int misses = 0;
      for (std::size_t i = 0; i < waiting.size() && misses < 64; ++i) {
        if (machine.take(waiting[i])) {
          packed.push_back(i);
          worth += fair_price(waiting[i]);
        } else {
          ++misses;
        }
      }
      if (packed.empty() || !(worth > 0)) continue;
      const double score = std::max(option.price, 1e-9) / worth;
      // Among equal scores: the higher priority, then the cheaper one, then spot, then the first in the file.
      const auto priority = [&](const Option& of) { return options_.types[of.type].priority; };
      const bool better =
          score < best_score - 1e-9 ||
          (score < best_score + 1e-9 && best != nullptr &&
           (priority(option) > priority(*best) ||
            (priority(option) == priority(*best) &&
             (option.price < best->price - 1e-12 || (option.price <= best->price && option.spot && !best->spot)))));
      if (better) {
        best = &option;
        best_score = std::min(best_score, score);
        best_packed = std::move(packed);
      }
    }
    if (best == nullptr) {
      held_back = "types";
      break;
    }
    for (auto i = best_packed.rbegin(); i != best_packed.rend(); ++i)
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*i));
    const LaunchMachine launch{best->type, best->spot};
    decision.actions.push_back(launch);
    unacknowledged_.push_back(launch);
    ++launched[{best->type, best->spot}];
    serves[{best->type, best->spot}] += static_cast<int>(best_packed.size());
    ++of_type[best->type];
    ++workers;
    --room;
  }
  for (const auto& [kind, machines_of_kind] : launched)
    decision.log.push_back(fmt::format("launch {} machine{} ({}): {} of the {} waiting trials fit there",
                                       machines_of_kind, machines_of_kind == 1 ? "" : "s",
                                       describe(kind.first, kind.second), serves[kind], all.size()));
  std::string why;
  if (held_back == "max_workers")
    why = fmt::format("trials wait for a machine: there are as many as max_workers allows ({})", options_.max_workers);
  else if (held_back == "types") {
    why = "trials wait for a machine: every type that could hold them ";
    std::string blocked;
    for (const auto& [kind, block] : blocks_)
      if (now < block.until)
        blocked += fmt::format("{}{}: {}", blocked.empty() ? "" : "; ", describe(kind.first, kind.second), block.why);
    why += blocked.empty() ? "has its max_workers" : "has its max_workers, or could not be had (" + blocked + ")";
  }
  log_once(decision, "held", why);
}

void Autoscaler::keep_minimum(Seconds now, ScaleDecision& decision) {
  const auto options = choices(now);
  int workers = machines() + static_cast<int>(unacknowledged_.size());
  int room = launch_room();
  const auto launch = [&](const Option& option, const std::string& why) {
    const LaunchMachine machine{option.type, option.spot};
    decision.actions.push_back(machine);
    unacknowledged_.push_back(machine);
    ++workers;
    --room;
    decision.log.push_back(fmt::format("launch 1 machine ({}): {}", describe(option.type, option.spot), why));
  };
  const auto asked_of = [&](std::size_t type) {
    return static_cast<int>(std::count_if(unacknowledged_.begin(), unacknowledged_.end(),
                                          [&](const LaunchMachine& asked) { return asked.type == type; }));
  };
  for (const auto& option : options) {
    const auto& type = options_.types[option.type];
    while (count(option.type) + asked_of(option.type) < type.min_workers && workers < options_.max_workers && room > 0)
      launch(option, fmt::format("min_workers of '{}' is {}", type.name, type.min_workers));
  }
  while (workers < std::min(options_.min_workers, options_.max_workers) && room > 0) {
    const Option* cheapest = nullptr;
    for (const auto& option : options)
      if (count(option.type) + asked_of(option.type) < options_.types[option.type].max_workers &&
          (cheapest == nullptr || option.price < cheapest->price ||
           (option.price == cheapest->price &&
            options_.types[option.type].priority > options_.types[cheapest->type].priority)))
        cheapest = &option;
    if (cheapest == nullptr) break;
    launch(*cheapest, fmt::format("min_workers is {}", options_.min_workers));
  }
}

// Whether one of the waiting trials would fit on the machine if it took trials again.
bool Autoscaler::wanted_by(const Unit& unit, const std::vector<Resources>& waiting) const {
  const Room room = room_of(unit);
  return std::any_of(waiting.begin(), waiting.end(), [&](const Resources& needs) { return room.fits(needs); });
}

void Autoscaler::shrink(const Demand& demand, Seconds now, ScaleDecision& decision) {
  const auto busy = [&](const std::string& token) {
    const auto found = demand.running.find(token);
    return found != demand.running.end() && !found->second.empty();
  };
  std::vector<std::pair<std::string, Unit*>> idle;
  for (auto& [token, unit] : units_) {
    if (unit.head || unit.phase == Phase::ending) continue;
    if (unit.phase == Phase::launching) {
      if (now - unit.since > options_.launch_timeout) {
        unit.phase = Phase::ending;
        decision.actions.push_back(
            TerminateMachine{token, fmt::format("not ready {:.0f} s after its launch", now - unit.since)});
        decision.log.push_back(fmt::format("end a machine ({}): not ready {:.0f} s after its launch",
                                           describe(unit.type, unit.spot), now - unit.since));
        auto& block = blocks_[{unit.type, unit.spot}];
        block.failures = std::min(block.failures + 1, 40);
        block_launches(block, "a machine did not come up in time", false, now);
      }
      continue;
    }
    if (busy(token)) {
      unit.idle_since.reset();
      if (unit.phase == Phase::draining) {  // a trial was placed there meanwhile: the machine is kept
        unit.phase = Phase::ready;
        unit.since = now;
        decision.actions.push_back(UndrainMachine{token});
      }
      continue;
    }
    if (!unit.idle_since) unit.idle_since = now;
    if (unit.phase == Phase::draining) {
      // This Demand was made after the executor had processed the drain, and it shows no trial on the machine.
      if (now > unit.since && !demand.unacknowledged_drains.contains(token)) {
        unit.phase = Phase::ending;
        const auto why = fmt::format("idle for {:.0f} s", now - *unit.idle_since);
        decision.actions.push_back(TerminateMachine{token, why});
        decision.log.push_back(fmt::format("end a machine ({}): {}", describe(unit.type, unit.spot), why));
      }
      continue;
    }
    if (now - *unit.idle_since >= idle_timeout_of(unit)) idle.emplace_back(token, &unit);
  }
  // The most expensive first.
  hypertune::detail::stable_sort(idle.begin(), idle.end(), [&](const auto& a, const auto& b) {
    return price_of(a.second->type, a.second->spot) > price_of(b.second->type, b.second->spot);
  });
  const auto staying = [&](std::optional<std::size_t> type) {
    return static_cast<int>(std::count_if(units_.begin(), units_.end(), [&](const auto& entry) {
      const auto& unit = entry.second;
      return !unit.head && (unit.phase == Phase::ready || unit.phase == Phase::launching) &&
             (!type || unit.type == *type);
    }));
  };
  for (auto& [token, unit] : idle) {
    if (staying(std::nullopt) <= options_.min_workers) break;
    if (staying(unit->type) <= options_.types[unit->type].min_workers) continue;
    unit->phase = Phase::draining;
    unit->since = now;
    decision.actions.push_back(DrainMachine{token});
  }
}

ScaleDecision Autoscaler::decide(const Demand& demand, Seconds now) {
  ScaleDecision decision;
  keep_minimum(now, decision);
  auto waiting = unplaced(demand, decision.impossible);
  // Keeping a draining machine costs less than launching a new one.
  for (auto& [token, unit] : units_) {
    if (waiting.empty()) break;
    if (unit.phase != Phase::draining || !wanted_by(unit, waiting)) continue;
    unit.phase = Phase::ready;
    unit.since = now;
    unit.idle_since = now;
    decision.actions.push_back(UndrainMachine{token});
    decision.log.push_back(fmt::format("keep a machine ({}): trials wait again", describe(unit.type, unit.spot)));
    std::vector<Resources> none;
    waiting = unplaced(demand, none);
  }
  // A machine is not idle while trials wait that fit on it: they are about to be placed.
  if (!demand.pending.empty())
    for (auto& [token, unit] : units_) {
      if (!unit.idle_since || unit.phase != Phase::ready) continue;
      for (const auto& shape : demand.pending)
        if (shape.count > 0 && room_of(unit).fits(shape.needs)) {
          unit.idle_since = now;
          break;
        }
    }
  if (waiting.empty()) {
    need_since_.reset();
    log_once(decision, "held", "");
  } else {
    if (!need_since_) need_since_ = now;
    if (now - *need_since_ >= options_.grow_delay) grow(waiting, now, decision);
  }
  shrink(demand, now, decision);
  return decision;
}

Seconds Autoscaler::next_change(Seconds now) const {
  Seconds next = std::numeric_limits<double>::infinity();
  const auto at = [&](Seconds time) { next = std::min(next, std::max(time, now)); };
  if (need_since_) at(now < *need_since_ + options_.grow_delay ? *need_since_ + options_.grow_delay : next);
  for (const auto& [token, unit] : units_) {
    if (unit.head) continue;
    if (unit.phase == Phase::launching) at(unit.since + options_.launch_timeout);
    if (unit.phase == Phase::draining) at(now);
    if (unit.phase == Phase::ready && unit.idle_since) at(*unit.idle_since + idle_timeout_of(unit));
  }
  for (const auto& [kind, block] : blocks_)
    if (block.until > now) at(block.until);
  return next;
}

}  // namespace hypertune::inline v0::cluster
