// TrialRanking: definitions.
#pragma once

#include <hypertune/record/pareto.hpp>
#include <hypertune/search/detail/trial_ranking.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hypertune::inline v0::detail {

bool TrialRanking::before(std::size_t a, std::size_t b) const {
  const Entry& x = entries_[a];
  const Entry& y = entries_[b];
  if ((x.steps == failed) != (y.steps == failed)) return y.steps == failed;
  if (x.violation != y.violation) return x.violation < y.violation;
  if (x.steps != y.steps) return x.steps > y.steps;
  if (x.loss != y.loss) return x.loss < y.loss;
  return a < b;
}

bool TrialRanking::is_useful(const Entry& entry) const {
  if (entry.steps == failed || !std::isfinite(entry.loss)) return false;
  return std::all_of(entry.losses.begin(), entry.losses.end(), [](double x) { return std::isfinite(x); });
}

void TrialRanking::enter(std::uint32_t slot) {
  const auto order = [this](std::uint32_t a, std::uint32_t b) { return before(a, b); };
  order_.insert(std::lower_bound(order_.begin(), order_.end(), slot, order), slot);
  useful_ += is_useful(entries_[slot]);
  if (objectives_ < 2 || !is_useful(entries_[slot])) return;
  elite_.push_back(slot);
  if (elite_.size() < 2 * elite_size) return;
  elite_ = best_of(std::move(elite_), elite_size, false);
}

void TrialRanking::forget(std::uint32_t slot) {
  const auto order = [this](std::uint32_t a, std::uint32_t b) { return before(a, b); };
  order_.erase(std::lower_bound(order_.begin(), order_.end(), slot, order));
  useful_ -= is_useful(entries_[slot]);
  std::erase(elite_, slot);
}

std::pair<std::size_t, bool> TrialRanking::observe(const Observation& o) {
  const auto [at, is_new] = slots_.try_emplace(o.trial, static_cast<std::uint32_t>(entries_.size()));
  const std::uint32_t slot = at->second;
  if (is_new) {
    entries_.emplace_back();
    pending_.push_back(slot);
  }
  if (o.kind == Observation::Kind::started) return {slot, is_new};
  Entry& entry = entries_[slot];
  const bool ended = o.kind == Observation::Kind::ended;
  if (ended && entry.pending) {
    entry.pending = false;
    std::erase(pending_, slot);
  }
  if (!ended && o.losses.empty()) return {slot, is_new};
  if (entry.judged) forget(slot);
  const auto clean = [](double x) { return x != x ? worst_loss : x; };
  const bool has_failed = ended && o.state == TrialState::failed;
  entry.steps = has_failed ? failed : ended && o.state == TrialState::completed ? whole : std::max(o.steps, 0);
  if (has_failed || (o.losses.empty() && !entry.judged)) {
    entry.loss = worst_loss;
    entry.losses.assign(objectives_ > 1 ? objectives_ : 0, worst_loss);
  } else if (!o.losses.empty()) {
    entry.loss = clean(o.losses.front());
    if (objectives_ > 1) {
      entry.losses.assign(objectives_, worst_loss);
      for (std::size_t i = 0; i < objectives_ && i < o.losses.size(); ++i) entry.losses[i] = clean(o.losses[i]);
    }
  }
  if (constraints_ > 0) {
    if (!o.constraints.empty() || entry.constraints.empty())
      entry.constraints.assign(constraints_, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = 0; i < constraints_ && i < o.constraints.size(); ++i) entry.constraints[i] = o.constraints[i];
    entry.violation = 0;
    for (const double c : entry.constraints)  // an unknown constraint may be met, so it does not count
      entry.violation += c > 0 ? std::min(c, 1e100) : 0;
  }
  entry.judged = true;
  enter(slot);
  return {slot, is_new};
}

std::vector<std::uint32_t> TrialRanking::best(std::size_t count) const {
  if (objectives_ >= 2) {
    auto slots = best_of(elite_, count, true);
    if (slots.size() < count)  // fewer useful trials than asked for
      for (const std::uint32_t slot : order_)
        if (slots.size() < count && std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
    return slots;
  }
  return {order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(std::min(count, order_.size()))};
}

// Group by group of comparable trials, and in each front by front. From the last front, which does not fit as a whole:
// by the hypervolume that each adds to those chosen, or (with too many objectives, or without `by_volume`) in order.
std::vector<std::uint32_t> TrialRanking::best_of(std::vector<std::uint32_t> slots, std::size_t count,
                                                 bool by_volume) const {
  std::sort(slots.begin(), slots.end(), [this](std::uint32_t a, std::uint32_t b) { return before(a, b); });
  std::vector<std::uint32_t> chosen;
  for (std::size_t begin = 0; begin < slots.size() && chosen.size() < count;) {
    std::size_t end = begin + 1;
    while (end < slots.size() && alike(slots[begin], slots[end])) ++end;
    std::vector<std::uint32_t> left(slots.begin() + static_cast<std::ptrdiff_t>(begin),
                                    slots.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
    while (!left.empty() && chosen.size() < count) {
      std::vector<std::vector<double>> losses;
      for (const std::uint32_t slot : left) losses.push_back(entries_[slot].losses);
      const auto front = pareto_front(losses);
      const std::size_t room = count - chosen.size();
      if (front.size() <= room || !by_volume || objectives_ > 4) {
        for (std::size_t i = 0; i < front.size() && i < room; ++i) chosen.push_back(left[front[i]]);
      } else {
        std::vector<double> reference(objectives_);
        for (std::size_t m = 0; m < objectives_; ++m) {
          double low = worst_loss, high = -worst_loss;
          for (const std::size_t i : front) {
            low = std::min(low, losses[i][m]);
            high = std::max(high, losses[i][m]);
          }
          reference[m] = high + 0.1 * (high - low) + 1e-12 * std::fabs(high);
        }
        // Lazy greedy selection: old gains are upper bounds, as a point's gain only shrinks when others are chosen.
        std::vector<std::pair<double, std::size_t>> gains;
        for (const std::size_t i : front) gains.emplace_back(hypervolume({&losses[i], 1}, reference), i);
        std::make_heap(gains.begin(), gains.end());
        std::vector<std::vector<double>> selected;
        double volume = 0;
        while (selected.size() < room) {
          std::pop_heap(gains.begin(), gains.end());
          selected.push_back(losses[gains.back().second]);
          const double gain = hypervolume(selected, reference) - volume;
          if (gains.size() > 1 && gain < gains.front().first) {
            selected.pop_back();
            gains.back().first = gain;
            std::push_heap(gains.begin(), gains.end());
            continue;
          }
          volume += gain;
          chosen.push_back(left[gains.back().second]);
          gains.pop_back();
        }
      }
      std::vector<std::uint32_t> rest;
      for (std::size_t i = 0; i < left.size(); ++i)
        if (!std::binary_search(front.begin(), front.end(), i)) rest.push_back(left[i]);
      left = std::move(rest);
    }
  }
  return chosen;
}

}  // namespace hypertune::inline v0::detail
