// ASHA: definitions.
#pragma once

#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/detail/rung.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::detail {

/// One successive-halving ladder in the stopping form: a trial ends at a rung if it is not among the best of the trials
/// that have reached that rung so far.
class StoppingLadder {
 public:
  explicit StoppingLadder(std::vector<int> steps) : steps_(std::move(steps)), rungs_(steps_.size()) {}

  /// Judges a report at every rung between `next` (the first the trial has not passed) and its steps.
  bool survives(std::size_t& next, int steps, double loss, std::size_t reduction);

  /// How a loss compares at a rung.
  RungVerdict verdict(std::size_t rung, double loss) const;
  std::size_t rungs() const { return rungs_.size(); }

 private:
  struct Rung {
    TopFraction<double> losses;
    bool has_finite = false;
  };
  std::vector<int> steps_;
  std::vector<Rung> rungs_;
};

/// One ladder in the promotion form: every trial pauses at every rung; the best of a rung may be resumed.
class PromotionLadder {
 public:
  explicit PromotionLadder(std::vector<int> steps) : steps_(std::move(steps)), rungs_(steps_.size()) {}

  const std::vector<int>& steps() const { return steps_; }

  /// Takes a report. Returns true if the trial has reached a rung and pauses there. `over`: it counts at the rung, but
  /// does not pause (Progress::over).
  bool arrives(TrialId trial, int steps, double loss, std::size_t reduction, bool over = false);

  /// The best trial at a rung that may be promoted.
  std::optional<TrialId> promotable(std::size_t rung);
  void resume(TrialId trial);
  void forget(TrialId trial) { places_.erase(trial); }
  /// How a trial compares at the rung where it is paused.
  std::optional<RungVerdict> verdict(TrialId trial) const;

 private:
  struct Place {
    std::size_t rung = 0;  // the rung it pauses at, or trains towards
    int steps = 0;
    double loss = worst_loss;  // at that rung
    bool paused = false;
  };
  struct Rung {
    TopFraction<RungEntry> entries;
    std::vector<RungEntry> promotable;  // heap, the best on top; outdated entries are dropped when they reach the top
    bool has_finite = false;
  };

  bool may_go_on(std::size_t rung, const RungEntry& entry) const;

  // A trial that reports seldom may already have trained past the next rung. If it is among the best here, it enters
  // that rung at once instead of being resumed for steps that it has done.
  void enter(std::size_t rung, RungEntry entry, std::size_t reduction);

  std::vector<int> steps_;
  std::vector<Rung> rungs_;
  std::unordered_map<TrialId, Place> places_;
};

struct AshaState {
  bool ready = false;
  std::vector<double> shares;  // cumulative: the share of the trials that each bracket gets
  std::vector<StoppingLadder> stopping;
  std::vector<PromotionLadder> promoting;
  std::unordered_map<TrialId, std::size_t> next_rung;  // stopping form: of running trials only
  double judged = worst_loss;                          // the loss of the last report
};

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

/// The state of these options; its ladders are made first.
AshaState& prepared(Asha& asha) {
  AshaState& state = asha.state_.made();
  if (state.ready) return state;
  double total = 0;
  double size = 1;  // of a bracket relative to the first: 1/asha.reduction_factor per rung fewer, at an equal budget
  const auto levels =
      static_cast<double>(detail::rung_steps(asha.grace_period, asha.max_steps, asha.reduction_factor).size()) + 1;
  std::int64_t first = asha.grace_period;
  for (int b = 0; b < asha.brackets && (b == 0 || first < asha.max_steps);
       ++b, first *= asha.reduction_factor, size /= asha.reduction_factor) {
    auto steps = detail::rung_steps(static_cast<int>(first), asha.max_steps, asha.reduction_factor);
    if (asha.promotion)
      state.promoting.emplace_back(std::move(steps));
    else
      state.stopping.emplace_back(std::move(steps));
    total += size * levels / (levels - b);
    state.shares.push_back(total);
  }
  for (double& share : state.shares) share /= total;
  state.ready = true;
  return state;
}

std::size_t bracket_of(const AshaState& state, TrialId trial) {
  if (state.shares.size() == 1) return 0;
  // Multiples of the golden ratio fill the unit interval evenly, so that any run of trials is distributed in
  // proportion.
  constexpr double golden = 0.6180339887498949;
  const double x = static_cast<double>(trial) * golden;
  const double place = x - std::floor(x);
  const auto at = std::upper_bound(state.shares.begin(), state.shares.end() - 1, place);
  return static_cast<std::size_t>(at - state.shares.begin());
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Asha::check() const {
  if (max_steps < grace_period)
    throw OptionError(type, "max_steps",
                      detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
}

Decision Asha::on_report(const Progress& progress) {
  auto& state = detail::prepared(*this);
  const double loss = detail::ranked_loss(progress.loss());
  const auto share = static_cast<std::size_t>(reduction_factor);
  const std::size_t bracket = detail::bracket_of(state, progress.trial);
  if (promotion) {
    if (progress.steps >= max_steps) return Decision::complete;
    const bool pauses = state.promoting[bracket].arrives(progress.trial, progress.steps, loss, share, progress.over);
    return pauses ? Decision::pause : Decision::proceed;
  }
  std::size_t& next = state.next_rung[progress.trial];
  state.judged = loss;
  const bool survives = state.stopping[bracket].survives(next, progress.steps, loss, share);
  if (progress.steps >= max_steps) return Decision::complete;
  return survives ? Decision::proceed : Decision::stop;
}

void Asha::on_resume(TrialId trial) {
  auto& state = detail::prepared(*this);
  if (promotion) state.promoting[detail::bracket_of(state, trial)].resume(trial);
}

void Asha::on_end(TrialId trial, TrialState) {
  auto& state = detail::prepared(*this);
  if (promotion)
    state.promoting[detail::bracket_of(state, trial)].forget(trial);
  else
    state.next_rung.erase(trial);
}

Choice Asha::choose_next(const Pool& pool) {
  auto& state = detail::prepared(*this);
  if (promotion) {
    const std::size_t rungs = state.promoting.front().steps().size();
    for (std::size_t height = rungs; height-- > 0;)  // rung k of bracket b has the steps of rung k + b of the first
      for (std::size_t b = 0; b < state.promoting.size() && b <= height; ++b)
        if (const auto trial = state.promoting[b].promotable(height - b)) return Choice::resume(*trial);
  }
  return pool.more_trials ? Choice::start_new() : Choice::wait();
}

std::string Asha::why(TrialId trial, const LossText& losses) const {
  const auto& state = state_.or_default();
  if (!state.ready) return {};
  const std::size_t bracket = detail::bracket_of(state, trial);
  std::optional<detail::RungVerdict> verdict;
  if (promotion) {
    verdict = state.promoting[bracket].verdict(trial);
  } else if (const auto next = state.next_rung.find(trial); next != state.next_rung.end() && next->second > 0) {
    verdict = state.stopping[bracket].verdict(next->second - 1, state.judged);
  }
  if (!verdict) return {};
  const std::string text = verdict->text(losses);
  return state.shares.size() > 1 ? detail::format("in bracket {} {}", bracket + 1, text) : text;
}

std::string Asha::name() const { return promotion ? "asha (promotion)" : "asha"; }

}  // namespace hypertune::inline v0
