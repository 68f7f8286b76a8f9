// ASHA: asynchronous successive halving, in its stopping and its promotion form.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hypertune {

namespace detail {

/// One successive-halving ladder in the stopping form: a trial that is not among the best of those that reached a rung
/// before it ends there.
class StoppingLadder {
 public:
  explicit StoppingLadder(std::vector<int> steps) : steps_(std::move(steps)), rungs_(steps_.size()) {}

  /// Judges a report at every rung between `next` (the first the trial has not passed) and its steps.
  bool survives(std::size_t& next, int steps, double loss, std::size_t reduction) {
    for (; next < steps_.size() && steps_[next] <= steps; ++next) {
      Rung& rung = rungs_[next];
      rung.losses.add(loss, (rung.losses.size() + 1) / reduction);
      if (std::isfinite(loss)) rung.has_finite = true;
      if (rung.losses.quota() == 0) continue;  // too few to compare with
      const bool hopeless = loss == worst_loss && rung.has_finite;
      if (hopeless || loss > rung.losses.boundary()) return false;
    }
    return true;
  }

  /// How a loss stands at a rung.
  RungVerdict verdict(std::size_t rung, double loss) const {
    const auto& losses = rungs_.at(rung).losses;
    return {.rung = rung,
            .steps = steps_[rung],
            .loss = loss,
            .bar = losses.quota() == 0 ? worst_loss : losses.boundary(),
            .quota = losses.quota(),
            .trials = losses.size()};
  }
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

  /// Takes a report; true if the trial has come to a rung and pauses there.
  bool arrives(TrialId trial, int steps, double loss, std::size_t reduction) {
    Place& place = places_[trial];
    place.steps = steps;
    if (place.paused) return true;
    if (place.rung >= steps_.size() || steps < steps_[place.rung]) return false;
    place.paused = true;
    place.loss = loss;
    enter(place.rung, {loss, trial}, reduction);
    return true;
  }

  /// The best promotable trial of a rung.
  std::optional<TrialId> promotable(std::size_t rung) {
    auto& waiting = rungs_[rung].promotable;
    while (!waiting.empty() && !may_go_on(rung, waiting.front())) {
      std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
      waiting.pop_back();
    }
    if (waiting.empty()) return std::nullopt;
    return waiting.front().trial;
  }

  void resume(TrialId trial) {
    const auto found = places_.find(trial);
    if (found == places_.end() || !found->second.paused) return;
    found->second.paused = false;
    ++found->second.rung;
  }
  void forget(TrialId trial) { places_.erase(trial); }
  /// How a trial stands at the rung where it waits.
  std::optional<RungVerdict> verdict(TrialId trial) const {
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

 private:
  struct Place {
    std::size_t rung = 0;  // the rung it pauses at, or trains towards
    int steps = 0;
    double loss = worst_loss;  // at that rung
    bool paused = false;
  };
  struct Rung {
    TopFraction<RungEntry> entries;
    std::vector<RungEntry>
        promotable;  // heap, the best on top; entries that no longer hold are dropped when they surface
    bool has_finite = false;
  };

  bool may_go_on(std::size_t rung, const RungEntry& entry) const {
    const Rung& r = rungs_[rung];
    if (r.entries.quota() == 0 || r.entries.boundary() < entry) return false;
    if (entry.loss == worst_loss && r.has_finite) return false;
    const auto found = places_.find(entry.trial);
    return found != places_.end() && found->second.paused && found->second.rung == rung;
  }

  // A trial that reports seldom may have trained past the next rung already: where it is among the best it stands on
  // that one at once, instead of being resumed for steps that it has done.
  void enter(std::size_t rung, RungEntry entry, std::size_t reduction) {
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

  std::vector<int> steps_;
  std::vector<Rung> rungs_;
  std::unordered_map<TrialId, Place> places_;
};

struct AshaState {
  bool ready = false;
  std::vector<double> shares;  // cumulative: which part of the trials each bracket gets
  std::vector<StoppingLadder> stopping;
  std::vector<PromotionLadder> promoting;
  std::unordered_map<TrialId, std::size_t> next_rung;  // stopping form, trials under way only
  double judged = worst_loss;                          // the loss of the last report
};

}  // namespace detail

/// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020).
/// Trials are compared at rungs of grace_period, grace_period * reduction_factor, grace_period * reduction_factor^2, …
/// steps; about one in `reduction_factor` goes past each.
///
/// In the stopping form a trial ends at a rung unless it is among the best floor(n / reduction) of the n trials that
/// have come there so far, itself included; while n < reduction nothing can be said and it goes on. In the promotion
/// form every trial pauses at its rung, and a free slot resumes the best one that is in the top 1/reduction_factor of
/// its rung and was not promoted yet, the highest rung first; only if there is none a new trial starts.
///
/// A trial whose reports skip rungs is judged at each rung that it passed. A loss of NaN or +infinity is never among
/// the best of a rung where there is a finite one. With several `brackets`, bracket b begins at grace_period *
/// reduction_factor^b; trials are dealt to them in the proportions of Hyperband, by their number. Brackets beyond the
/// number of rungs are ignored.
///
/// A report costs O(log n) for n trials at the rung; 8 bytes (promotion: up to 48) are kept per trial and rung.
struct Asha {
  static constexpr const char* type = "asha";

  int grace_period = 1;
  int max_steps = 81;
  int reduction_factor = 3;
  int brackets = 1;
  bool promotion = false;

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in so many goes past a rung");
    option("brackets", self.brackets, at_least(1), "ladders with a later and later first rung");
    option("promotion", self.promotion, "trials pause at rungs, the best are resumed; else the bad ones stop");
  }
  void check() const {
    if (max_steps < grace_period)
      throw OptionError(type, "max_steps",
                        detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
  }

  detail::AshaState state_{};

  Decision on_report(const Progress& progress) {
    prepare();
    const double loss = detail::ranked_loss(progress.loss());
    const auto share = static_cast<std::size_t>(reduction_factor);
    const std::size_t bracket = bracket_of(progress.trial);
    if (promotion) {
      if (progress.steps >= max_steps) return Decision::complete;
      const bool pauses = state_.promoting[bracket].arrives(progress.trial, progress.steps, loss, share);
      return pauses ? Decision::pause : Decision::go_on;
    }
    std::size_t& next = state_.next_rung[progress.trial];
    state_.judged = loss;
    const bool survives = state_.stopping[bracket].survives(next, progress.steps, loss, share);
    if (progress.steps >= max_steps) return Decision::complete;
    return survives ? Decision::go_on : Decision::stop;
  }

  void on_resume(TrialId trial) {
    prepare();
    if (promotion) state_.promoting[bracket_of(trial)].resume(trial);
  }

  void on_end(TrialId trial, TrialState) {
    prepare();
    if (promotion)
      state_.promoting[bracket_of(trial)].forget(trial);
    else
      state_.next_rung.erase(trial);
  }

  Choice choose_next(const Pool& pool) {
    prepare();
    if (promotion) {
      const std::size_t rungs = state_.promoting.front().steps().size();
      for (std::size_t height = rungs;
           height-- > 0;)  // bracket b's rung k stands as high as the first one's rung k + b
        for (std::size_t b = 0; b < state_.promoting.size() && b <= height; ++b)
          if (const auto trial = state_.promoting[b].promotable(height - b)) return Choice::resume(*trial);
    }
    return pool.more_trials ? Choice::start_new() : Choice::wait();
  }

  std::string why(TrialId trial, const LossText& losses) const {
    if (!state_.ready) return {};
    const std::size_t bracket = bracket_of(trial);
    std::optional<detail::RungVerdict> verdict;
    if (promotion) {
      verdict = state_.promoting[bracket].verdict(trial);
    } else if (const auto next = state_.next_rung.find(trial);
               next != state_.next_rung.end() && next->second < state_.stopping[bracket].rungs()) {
      verdict = state_.stopping[bracket].verdict(next->second, state_.judged);
    }
    if (!verdict) return {};
    const std::string text = verdict->text(losses);
    return state_.shares.size() > 1 ? detail::format("in bracket {} {}", bracket + 1, text) : text;
  }
  std::string name() const { return promotion ? "asha (promotion)" : "asha"; }

 private:
  void prepare() {
    if (state_.ready) return;
    double total = 0;
    double size =
        1;  // of Hyperband's bracket relative to the first: 1/reduction_factor per rung fewer, and budget to spare
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

  std::size_t bracket_of(TrialId trial) const {
    if (state_.shares.size() == 1) return 0;
    // Multiples of the golden ratio fill the unit interval evenly: any run of trials is shared out in proportion.
    constexpr double golden = 0.6180339887498949;
    const double x = static_cast<double>(trial) * golden;
    const double place = x - std::floor(x);
    const auto at = std::upper_bound(state_.shares.begin(), state_.shares.end() - 1, place);
    return static_cast<std::size_t>(at - state_.shares.begin());
  }
};

}  // namespace hypertune
