// HyperBand: successive halving in brackets that trade the number of trials against the steps each gets.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune {

/// How many trials of a bracket train to how many steps.
struct BracketRung {
  std::int64_t trials;
  int steps;
  friend bool operator==(const BracketRung&, const BracketRung&) = default;
};

/// The brackets of HyperBand from the most exploring one on, each a list of rungs; as in table 1 of the paper for
/// max_steps = 81, reduction_factor = 3, where the first has 81 trials at 1 step, 27 at 3, 9 at 9, 3 at 27 and 1 at 81.
inline std::vector<std::vector<BracketRung>> hyperband_brackets(int max_steps, int reduction_factor) {
  if (max_steps < 1) fail(Errc::usage, "hyperband: max_steps is {}, but must be at least 1", max_steps);
  if (reduction_factor < 2)
    fail(Errc::usage, "hyperband: reduction_factor is {}, but must be at least 2", reduction_factor);
  std::vector<std::int64_t> powers{1};  // of reduction_factor, up to max_steps: whole numbers, as logarithms round
  while (powers.back() * reduction_factor <= max_steps) powers.push_back(powers.back() * reduction_factor);
  const auto levels = static_cast<std::int64_t>(powers.size());
  std::vector<std::vector<BracketRung>> brackets;
  for (std::int64_t s = levels - 1; s >= 0; --s) {
    const auto at = [&](std::int64_t k) { return powers[static_cast<std::size_t>(k)]; };
    const std::int64_t trials = (levels * at(s) + s) / (s + 1);  // the ceiling of levels * reduction_factor^s / (s + 1)
    std::vector<BracketRung> rungs;
    for (std::int64_t i = 0; i <= s; ++i)
      rungs.push_back({std::max<std::int64_t>(1, trials / at(i)), static_cast<int>(max_steps / at(s - i))});
    brackets.push_back(std::move(rungs));
  }
  return brackets;
}

namespace detail {

class HyperBandState {
 public:
  HyperBandState() = default;
  HyperBandState(int max, int reduction) : plans_(hyperband_brackets(max, reduction)), max_(max) {}

  bool ready() const { return !plans_.empty(); }

  void create(TrialId trial) {
    if (places_.contains(trial)) return;
    newest_ = std::max(newest_, trial);
    if (brackets_.empty() || brackets_.back().closed) {
      brackets_.push_back({.plan = next_plan_++ % plans_.size()});
      ++first_free_;
    }
    Bracket& bracket = brackets_.back();
    places_.emplace(trial, Place{.bracket = first_free_ - 1});
    ++bracket.members;
    ++bracket.training;
    if (bracket.members == plans_[bracket.plan].front().trials) bracket.closed = true;
  }

  Decision report(TrialId trial, int steps, double loss) {
    if (!places_.contains(trial)) {
      if (trial <= newest_) return Decision::stop;  // it has ended already
      create(trial);
    }
    Place& place = places_.at(trial);
    if (steps >= max_) return Decision::complete;
    if (place.state != State::training) return Decision::pause;
    Bracket& bracket = bracket_of(place);
    if (steps < plans_[bracket.plan][bracket.rung].steps) return Decision::go_on;
    place.state = State::waiting;
    place.steps = steps;
    bracket.arrived.push_back({loss, trial});
    --bracket.training;
    if (bracket.closed) halve(place.bracket);
    return Decision::pause;
  }

  void resume(TrialId trial) {
    const auto found = places_.find(trial);
    if (found == places_.end()) return;
    Place& place = found->second;
    // Only when there are no more trials is one resumed from a bracket that is still open: that is what closes it.
    if (place.state == State::waiting) close(place.bracket);
    if (place.state == State::promoted) place.state = State::training;
  }

  void end(TrialId trial) {
    const auto found = places_.find(trial);
    if (found == places_.end()) return;
    const Place place = found->second;
    places_.erase(found);
    verdicts_.erase(trial);
    Bracket* bracket = find_bracket(place.bracket);
    if (bracket == nullptr) return;
    if (place.state == State::training || place.state == State::promoted) --bracket->training;
    if (place.state == State::waiting)
      std::erase_if(bracket->arrived, [&](const RungEntry& e) { return e.trial == trial; });
    if (bracket->closed) halve(place.bracket);
  }

  Choice choose(const Pool& pool) {
    while (!losers_.empty() && !places_.contains(losers_.front())) losers_.pop_front();
    if (!losers_.empty()) return Choice::stop(losers_.front());
    while (!winners_.empty() && !still_promoted(winners_.front())) winners_.pop_front();
    if (!winners_.empty()) return Choice::resume(winners_.front().trial);
    if (pool.more_trials) return Choice::start_new();
    // The last bracket stays short of trials: it goes on with those it has.
    if (!brackets_.empty() && !brackets_.back().closed && brackets_.back().training == 0) {
      if (const auto trial = first_to_resume(brackets_.back())) return Choice::resume(*trial);
    }
    return Choice::wait();
  }

  std::string why(TrialId trial, const LossText& losses) const {
    const auto found = verdicts_.find(trial);
    if (found == verdicts_.end()) return {};
    const auto place = places_.find(trial);
    const std::string text = found->second.text(losses);
    return place == places_.end() ? text : detail::format("in bracket {} {}", place->second.bracket + 1, text);
  }

 private:
  enum class State : std::uint8_t { training, waiting, promoted, lost };

  struct Place {
    std::uint64_t bracket;
    std::size_t rung = 0;  // the last one it was promoted to
    int steps = 0;
    State state = State::training;
  };
  struct Bracket {
    std::size_t plan = 0;
    std::size_t rung = 0;              // the one its trials train towards
    std::int64_t members = 0;          // trials it was given
    std::int64_t training = 0;         // trials that have not come to the rung yet
    bool closed = false;               // gets no more trials
    std::vector<RungEntry> arrived{};  // trials that wait at the rung
  };

  struct Winner {
    TrialId trial;
    std::size_t rung;  // a trial wins several times; the earlier ones must not be taken for the last
  };

  bool still_promoted(const Winner& winner) const {
    const auto found = places_.find(winner.trial);
    return found != places_.end() && found->second.state == State::promoted && found->second.rung == winner.rung;
  }
  Bracket* find_bracket(std::uint64_t number) {
    const std::uint64_t first = first_free_ - brackets_.size();
    return number < first ? nullptr : &brackets_[static_cast<std::size_t>(number - first)];
  }
  Bracket& bracket_of(const Place& place) { return *find_bracket(place.bracket); }

  void close(std::uint64_t number) {
    Bracket* bracket = find_bracket(number);
    if (bracket == nullptr || bracket->closed) return;
    bracket->closed = true;
    halve(number);
  }

  /// How many of those that arrived (in order of loss) go on to `rung`.
  std::size_t promotions(const Bracket& bracket, std::size_t rung, const std::vector<RungEntry>& arrived) const {
    const auto& plan = plans_[bracket.plan];
    const std::int64_t planned = plan[rung].trials * bracket.members / plan.front().trials;
    const auto quota = std::min(static_cast<std::size_t>(std::max<std::int64_t>(1, planned)), arrived.size());
    const auto finite = static_cast<std::size_t>(
        std::count_if(arrived.begin(), arrived.end(), [](const RungEntry& e) { return e.loss != worst_loss; }));
    return finite > 0 ? std::min(quota, finite) : quota;
  }

  /// A trial that closing the bracket would let go on: what halve() does, without doing it.
  std::optional<TrialId> first_to_resume(const Bracket& bracket) const {
    auto arrived = bracket.arrived;
    std::sort(arrived.begin(), arrived.end());
    for (std::size_t rung = bracket.rung + 1; !arrived.empty(); ++rung) {
      arrived.resize(promotions(bracket, rung, arrived));
      for (const RungEntry& e : arrived)
        if (places_.at(e.trial).steps < plans_[bracket.plan][rung].steps) return e.trial;
    }
    return std::nullopt;
  }

  // Once all trials of a closed bracket have come to its rung or ended, the best go on. Trials that have already done
  // the steps of the next rung (their reports skip some) stand on that one at once.
  void halve(std::uint64_t number) {
    Bracket& bracket = *find_bracket(number);
    const auto& plan = plans_[bracket.plan];
    while (bracket.training == 0 && !bracket.arrived.empty()) {
      auto arrived = std::exchange(bracket.arrived, {});
      std::sort(arrived.begin(), arrived.end());
      ++bracket.rung;
      const std::size_t quota = promotions(bracket, bracket.rung, arrived);
      for (std::size_t i = 0; i < arrived.size(); ++i) {
        Place& place = places_.at(arrived[i].trial);
        if (i >= quota) {
          place.state = State::lost;
          losers_.push_back(arrived[i].trial);
          verdicts_[arrived[i].trial] = {.rung = bracket.rung - 1,
                                         .steps = plan[bracket.rung - 1].steps,
                                         .loss = arrived[i].loss,
                                         .bar = arrived[quota - 1].loss,
                                         .quota = quota,
                                         .trials = arrived.size()};
        } else if (place.steps >= plan[bracket.rung].steps) {
          bracket.arrived.push_back(arrived[i]);
        } else {
          place.state = State::promoted;
          place.rung = bracket.rung;
          winners_.push_back({arrived[i].trial, bracket.rung});
          ++bracket.training;
        }
      }
    }
    while (!brackets_.empty() && brackets_.front().closed && brackets_.front().training == 0 &&
           brackets_.front().arrived.empty())
      brackets_.pop_front();
  }

  std::vector<std::vector<BracketRung>> plans_;
  int max_ = 0;
  std::size_t next_plan_ = 0;
  std::deque<Bracket> brackets_;  // from the oldest that is not over; only the last one may be open
  TrialId newest_ = -1;
  std::uint64_t first_free_ = 0;                       // the number of the next bracket
  std::unordered_map<TrialId, Place> places_;          // of trials that have not ended
  std::deque<Winner> winners_;                         // to resume; some may have been since, or have ended
  std::deque<TrialId> losers_;                         // to stop; some may have ended since
  std::unordered_map<TrialId, RungVerdict> verdicts_;  // on them
};

}  // namespace detail

/// Hyperband (Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 2018). Trials
/// fill brackets of hyperband_brackets() in turn, over and over; in each, all trials train to the first rung and pause
/// there, the best 1/reduction_factor of them train to the next one, and so on to `max_steps` steps. While a rung
/// fills, free slots start trials of the next brackets, so none is idle.
///
/// Failed trials make room for the next best; when there are no more trials the last bracket goes on in proportion to
/// those it has; a NaN loss is promoted only where no loss is finite. A bracket therefore always ends. A trial whose
/// reports skip rungs is judged at each of them. The number of samples best is a multiple of a round over all brackets
/// (81 + 34 + 15 + 8 + 5 = 143 by default).
struct HyperBand {
  static constexpr const char* type = "hyperband";

  int max_steps = 81;
  int reduction_factor = 3;

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in so many goes past a rung");
  }

  detail::HyperBandState state_{};

  void on_create(TrialId trial) { state().create(trial); }
  Decision on_report(const Progress& progress) {
    return state().report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()));
  }
  void on_resume(TrialId trial) { state().resume(trial); }
  void on_end(TrialId trial, TrialState) { state().end(trial); }
  Choice choose_next(const Pool& pool) { return state().choose(pool); }
  std::string why(TrialId trial, const LossText& losses) const { return state_.why(trial, losses); }

 private:
  detail::HyperBandState& state() {
    if (!state_.ready()) state_ = detail::HyperBandState(max_steps, reduction_factor);
    return state_;
  }
};

}  // namespace hypertune
