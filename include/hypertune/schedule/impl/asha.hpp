// ASHA: definitions.
#pragma once

#include <hypertune/schedule/asha.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hypertune::inline v0::detail {

bool StoppingLadder::survives(std::size_t& next, int steps, double loss, std::size_t reduction) {
  while (next < steps_.size() && steps_[next] <= steps) {
    Rung& rung = rungs_[next++];  // also if it does not survive: it may go on, and counts there once
    rung.losses.add(loss, (rung.losses.size() + 1) / reduction);
    if (std::isfinite(loss)) rung.has_finite = true;
    if (rung.losses.quota() == 0) continue;  // too few trials to compare with
    const bool hopeless = loss == worst_loss && rung.has_finite;
    if (hopeless || loss > rung.losses.boundary()) return false;
  }
  return true;
}

RungVerdict StoppingLadder::verdict(std::size_t rung, double loss) const {
  const auto& losses = rungs_.at(rung).losses;
  return {.rung = rung,
          .steps = steps_[rung],
          .loss = loss,
          .bar = losses.quota() == 0 ? worst_loss : losses.boundary(),
          .quota = losses.quota(),
          .trials = losses.size()};
}

bool PromotionLadder::arrives(TrialId trial, int steps, double loss, std::size_t reduction, bool over) {
  Place& place = places_[trial];
  place.steps = steps;
  if (place.paused) return true;
  if (over) {
    for (; place.rung < steps_.size() && steps >= steps_[place.rung]; ++place.rung)
      enter(place.rung, {loss, trial}, reduction);
    return false;
  }
  if (place.rung >= steps_.size() || steps < steps_[place.rung]) return false;
  place.paused = true;
  place.loss = loss;
  enter(place.rung, {loss, trial}, reduction);
  return true;
}

std::optional<TrialId> PromotionLadder::promotable(std::size_t rung) {
  auto& waiting = rungs_[rung].promotable;
  while (!waiting.empty() && !may_go_on(rung, waiting.front())) {
    std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
    waiting.pop_back();
  }
  if (waiting.empty()) return std::nullopt;
  return waiting.front().trial;
}

void PromotionLadder::resume(TrialId trial) {
  const auto found = places_.find(trial);
  if (found == places_.end() || !found->second.paused) return;
  found->second.paused = false;
  ++found->second.rung;
}

std::optional<RungVerdict> PromotionLadder::verdict(TrialId trial) const {
  const auto found = places_.find(trial);
  if (found == places_.end() || !found->second.paused) return std::nullopt;
  const auto& [rung, steps, loss, paused] = found->second;
  const auto& entries = rungs_[rung].entries;
  return RungVerdict{.rung = rung,
                     .steps = steps_[rung],
                     .loss = loss,
                     .bar = entries.quota() == 0 ? worst_loss : entries.boundary().loss,
                     .quota = entries.quota(),
                     .trials = entries.size()};
}

bool PromotionLadder::may_go_on(std::size_t rung, const RungEntry& entry) const {
  const Rung& r = rungs_[rung];
  if (r.entries.quota() == 0 || r.entries.boundary() < entry) return false;
  if (entry.loss == worst_loss && r.has_finite) return false;
  const auto found = places_.find(entry.trial);
  return found != places_.end() && found->second.paused && found->second.rung == rung;
}

void PromotionLadder::enter(std::size_t rung, RungEntry entry, std::size_t reduction) {
  Rung& r = rungs_[rung];
  if (std::isfinite(entry.loss)) r.has_finite = true;
  std::vector<RungEntry> entered;
  r.entries.add(entry, (r.entries.size() + 1) / reduction, [&](const RungEntry& e) { entered.push_back(e); });
  for (const RungEntry& e : entered) {
    if (!may_go_on(rung, e)) continue;
    Place& place = places_.at(e.trial);
    if (rung + 1 < steps_.size() && place.steps >= steps_[rung + 1]) {
      place.rung = rung + 1;
      enter(rung + 1, e, reduction);
    } else {
      r.promotable.push_back(e);
      std::push_heap(r.promotable.begin(), r.promotable.end(), std::greater<>());
    }
  }
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Asha::check() const {
  if (max_steps < grace_period)
    throw OptionError(type, "max_steps",
                      detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
}

Decision Asha::on_report(const Progress& progress) {
  prepare();
  const double loss = detail::ranked_loss(progress.loss());
  const auto share = static_cast<std::size_t>(reduction_factor);
  const std::size_t bracket = bracket_of(progress.trial);
  if (promotion) {
    if (progress.steps >= max_steps) return Decision::complete;
    const bool pauses = state_.promoting[bracket].arrives(progress.trial, progress.steps, loss, share, progress.over);
    return pauses ? Decision::pause : Decision::proceed;
  }
  std::size_t& next = state_.next_rung[progress.trial];
  state_.judged = loss;
  const bool survives = state_.stopping[bracket].survives(next, progress.steps, loss, share);
  if (progress.steps >= max_steps) return Decision::complete;
  return survives ? Decision::proceed : Decision::stop;
}

void Asha::on_end(TrialId trial, TrialState) {
  prepare();
  if (promotion)
    state_.promoting[bracket_of(trial)].forget(trial);
  else
    state_.next_rung.erase(trial);
}

Choice Asha::choose_next(const Pool& pool) {
  prepare();
  if (promotion) {
    const std::size_t rungs = state_.promoting.front().steps().size();
    for (std::size_t height = rungs; height-- > 0;)  // rung k of bracket b has the steps of rung k + b of the first
      for (std::size_t b = 0; b < state_.promoting.size() && b <= height; ++b)
        if (const auto trial = state_.promoting[b].promotable(height - b)) return Choice::resume(*trial);
  }
  return pool.more_trials ? Choice::start_new() : Choice::wait();
}

std::string Asha::why(TrialId trial, const LossText& losses) const {
  if (!state_.ready) return {};
  const std::size_t bracket = bracket_of(trial);
  std::optional<detail::RungVerdict> verdict;
  if (promotion) {
    verdict = state_.promoting[bracket].verdict(trial);
  } else if (const auto next = state_.next_rung.find(trial); next != state_.next_rung.end() && next->second > 0) {
    verdict = state_.stopping[bracket].verdict(next->second - 1, state_.judged);
  }
  if (!verdict) return {};
  const std::string text = verdict->text(losses);
  return state_.shares.size() > 1 ? detail::format("in bracket {} {}", bracket + 1, text) : text;
}

void Asha::prepare() {
  if (state_.ready) return;
  double total = 0;
  double size = 1;  // of a bracket relative to the first: 1/reduction_factor per rung fewer, at an equal budget
  const auto levels = static_cast<double>(detail::rung_steps(grace_period, max_steps, reduction_factor).size()) + 1;
  std::int64_t first = grace_period;
  for (int b = 0; b < brackets && (b == 0 || first < max_steps);
       ++b, first *= reduction_factor, size /= reduction_factor) {
    auto steps = detail::rung_steps(static_cast<int>(first), max_steps, reduction_factor);
    if (promotion)
      state_.promoting.emplace_back(std::move(steps));
    else
      state_.stopping.emplace_back(std::move(steps));
    total += size * levels / (levels - b);
    state_.shares.push_back(total);
  }
  for (double& share : state_.shares) share /= total;
  state_.ready = true;
}

std::size_t Asha::bracket_of(TrialId trial) const {
  if (state_.shares.size() == 1) return 0;
  // Multiples of the golden ratio fill the unit interval evenly, so that any run of trials is distributed in
  // proportion.
  constexpr double golden = 0.6180339887498949;
  const double x = static_cast<double>(trial) * golden;
  const double place = x - std::floor(x);
  const auto at = std::upper_bound(state_.shares.begin(), state_.shares.end() - 1, place);
  return static_cast<std::size_t>(at - state_.shares.begin());
}

}  // namespace hypertune::inline v0
