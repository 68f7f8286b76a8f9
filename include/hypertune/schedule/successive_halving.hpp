// SuccessiveHalving: the synchronous form.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune {

/// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
/// Optimization", AISTATS 2016): all trials train to `grace_period` steps and wait for one another there; the best
/// 1/reduction_factor of them go on to grace_period * reduction_factor, and so on to `max_steps` steps. Every
/// comparison is among all that are left, so that no trial goes on by having come early; the price is slots that wait
/// at the end of each round. Asha does not wait.
///
/// `trials` is the size of a round: 0 takes all samples as one. With more samples than that rounds follow one another,
/// and slots that would wait start trials of the next one. Failed trials leave their place to the next best; a NaN loss
/// goes on only where no loss is finite.
struct SuccessiveHalving {
  static constexpr const char* type = "successive_halving";

  int grace_period = 1;
  int max_steps = 81;
  int reduction_factor = 3;
  int trials = 0;

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps of the first round");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in so many goes past a rung");
    option("trials", self.trials, at_least(0), "of a round; 0: all samples");
  }
  void check() const {
    if (max_steps < grace_period)
      throw OptionError(type, "max_steps",
                        detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
  }

  struct Round {
    std::size_t rung = 0, members = 0, training = 0;  // `training`: those that have not come to the rung yet
    bool closed = false;                              // gets no more trials
    std::vector<detail::RungEntry> arrived{};
  };
  struct Place {
    std::size_t round = 0;
    bool waits = false, promoted = false;
  };
  std::vector<Round> rounds_{};
  std::unordered_map<TrialId, Place> places_{};
  std::set<TrialId> winners_{}, losers_{};                       // to resume, to stop
  std::unordered_map<TrialId, detail::RungVerdict> verdicts_{};  // on the losers

  void on_create(TrialId trial) {
    if (rounds_.empty() || rounds_.back().closed) rounds_.emplace_back();
    Round& round = rounds_.back();
    places_[trial] = {.round = rounds_.size() - 1};
    ++round.members;
    ++round.training;
    if (trials > 0 && round.members == static_cast<std::size_t>(trials)) round.closed = true;
  }
  Decision on_report(const Progress& progress) {
    const auto found = places_.find(progress.trial);
    if (found == places_.end()) return Decision::stop;
    if (progress.steps >= max_steps) return Decision::complete;
    Place& place = found->second;
    if (place.waits) return Decision::pause;
    Round& round = rounds_[place.round];
    if (progress.steps < target(round.rung)) return Decision::go_on;
    place.waits = true;
    place.promoted = false;
    round.arrived.push_back({detail::ranked_loss(progress.loss()), progress.trial});
    --round.training;
    halve(round);
    return Decision::pause;
  }
  void on_resume(TrialId trial) {
    const auto found = places_.find(trial);
    if (found == places_.end() || !found->second.waits) return;
    Round& round = rounds_[found->second.round];
    if (!round.closed) {  // there are no more trials: the round is what it is
      round.closed = true;
      halve(round);
    }
    winners_.erase(trial);
    found->second.waits = false;
  }
  void on_end(TrialId trial, TrialState) {
    const auto found = places_.find(trial);
    if (found == places_.end()) return;
    const Place place = found->second;
    places_.erase(found);
    winners_.erase(trial);
    losers_.erase(trial);
    verdicts_.erase(trial);
    Round& round = rounds_[place.round];
    if (!place.waits || place.promoted) --round.training;
    std::erase_if(round.arrived, [&](const auto& entry) { return entry.trial == trial; });
    halve(round);
  }
  Choice choose_next(const Pool& pool) const {
    if (!losers_.empty()) return Choice::stop(*losers_.begin());
    if (!winners_.empty()) return Choice::resume(*winners_.begin());
    if (pool.more_trials) return Choice::start_new();
    // The last round got fewer trials than it may have: it goes on with those once all have come.
    if (!rounds_.empty() && !rounds_.back().closed && rounds_.back().training == 0 && !rounds_.back().arrived.empty())
      return Choice::resume(std::min_element(rounds_.back().arrived.begin(), rounds_.back().arrived.end())->trial);
    return Choice::wait();
  }

  std::string why(TrialId trial, const LossText& losses) const {
    const auto found = verdicts_.find(trial);
    return found == verdicts_.end() ? "" : found->second.text(losses);
  }

 private:
  int target(std::size_t rung) const {
    std::int64_t steps = grace_period;
    for (std::size_t i = 0; i < rung && steps < max_steps; ++i) steps *= reduction_factor;
    return static_cast<int>(std::min<std::int64_t>(steps, max_steps));
  }
  void halve(Round& round) {
    if (!round.closed || round.training > 0 || round.arrived.empty()) return;
    auto arrived = std::exchange(round.arrived, {});
    std::sort(arrived.begin(), arrived.end());
    ++round.rung;
    std::size_t quota = round.members;
    for (std::size_t i = 0; i < round.rung; ++i) quota /= static_cast<std::size_t>(reduction_factor);
    quota = std::clamp<std::size_t>(quota, 1, arrived.size());
    const auto finite = static_cast<std::size_t>(
        std::count_if(arrived.begin(), arrived.end(), [](const auto& e) { return e.loss != worst_loss; }));
    if (finite > 0) quota = std::min(quota, finite);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      (i < quota ? winners_ : losers_).insert(arrived[i].trial);
      if (i >= quota)
        verdicts_[arrived[i].trial] = {.rung = round.rung - 1,
                                       .steps = target(round.rung - 1),
                                       .loss = arrived[i].loss,
                                       .bar = arrived[quota - 1].loss,
                                       .quota = quota,
                                       .trials = arrived.size()};
      places_.at(arrived[i].trial).promoted = i < quota;
    }
    round.training = quota;
  }
};

}  // namespace hypertune
