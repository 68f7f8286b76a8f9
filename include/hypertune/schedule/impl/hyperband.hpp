// HyperBand: definitions.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/hyperband.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

std::vector<std::vector<BracketRung>> hyperband_brackets(int max_steps, int reduction_factor) {
  if (max_steps < 1) fail(Errc::usage, "hyperband: max_steps is {}, but must be at least 1", max_steps);
  if (reduction_factor < 2)
    fail(Errc::usage, "hyperband: reduction_factor is {}, but must be at least 2", reduction_factor);
  std::vector<std::int64_t> powers{1};  // of reduction_factor, up to max_steps; integers, as logarithms round
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

}  // namespace hypertune::inline v0

namespace hypertune::inline v0::detail {

class HyperBandState {
 public:
  HyperBandState() = default;
  HyperBandState(int max, int reduction) : plans_(hyperband_brackets(max, reduction)), max_(max) {}

  bool ready() const { return !plans_.empty(); }

  void create(TrialId trial);
  /// `over`: it does not pause (Progress::over), so that its bracket goes on without it, as if it had failed.
  Decision report(TrialId trial, int steps, double loss, bool over = false);
  void resume(TrialId trial);
  void end(TrialId trial);
  Choice choose(const Pool& pool);
  std::string why(TrialId trial, const LossText& losses) const;

 private:
  enum class State : std::uint8_t { training, waiting, promoted, lost };

  struct Place {
    std::uint64_t bracket;
    std::size_t rung = 0;  // the last rung that it was promoted to
    int steps = 0;
    State state = State::training;
  };
  struct Bracket {
    std::size_t plan = 0;
    std::size_t rung = 0;              // the rung that its trials train towards
    std::int64_t members = 0;          // trials assigned to it
    std::int64_t training = 0;         // trials that have not reached the rung yet
    bool closed = false;               // gets no more trials
    std::vector<RungEntry> arrived{};  // trials that are paused at the rung
  };

  struct Winner {
    TrialId trial;
    std::size_t rung;  // a trial may win several times; this tells outdated entries from the latest
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

  void close(std::uint64_t number);

  /// How many of the arrived trials (in order of loss) are promoted to `rung`.
  std::size_t promotions(const Bracket& bracket, std::size_t rung, const std::vector<RungEntry>& arrived) const;

  /// The first trial that halve() would promote if the bracket were closed now. Changes nothing.
  std::optional<TrialId> first_to_resume(const Bracket& bracket) const;

  // Once all trials of a closed bracket have reached its rung or ended, promotes the best. A trial that has already
  // done the steps of the next rung (its reports skip some) arrives there at once.
  void halve(std::uint64_t number);

  std::vector<std::vector<BracketRung>> plans_;
  int max_ = 0;
  std::size_t next_plan_ = 0;
  std::deque<Bracket> brackets_;  // from the oldest unfinished one; only the last may be open
  TrialId newest_ = -1;
  std::uint64_t first_free_ = 0;                       // the number of the next bracket
  std::unordered_map<TrialId, Place> places_;          // of trials that have not ended
  std::deque<Winner> winners_;                         // to be resumed; outdated entries are skipped
  std::deque<TrialId> losers_;                         // to be stopped; ended trials are skipped
  std::unordered_map<TrialId, RungVerdict> verdicts_;  // of the losers
};

void HyperBandState::create(TrialId trial) {
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

Decision HyperBandState::report(TrialId trial, int steps, double loss, bool over) {
  if (!places_.contains(trial)) {
    if (trial <= newest_) return Decision::stop;  // the trial has ended
    create(trial);
  }
  Place& place = places_.at(trial);
  if (steps >= max_) return Decision::complete;
  if (over) return Decision::proceed;
  if (place.state != State::training) return Decision::pause;
  Bracket& bracket = bracket_of(place);
  if (steps < plans_[bracket.plan][bracket.rung].steps) return Decision::proceed;
  place.state = State::waiting;
  place.steps = steps;
  bracket.arrived.push_back({loss, trial});
  --bracket.training;
  if (bracket.closed) halve(place.bracket);
  return Decision::pause;
}

void HyperBandState::resume(TrialId trial) {
  const auto found = places_.find(trial);
  if (found == places_.end()) return;
  Place& place = found->second;
  // A trial of an open bracket is resumed only if there are no more trials; this closes the bracket.
  if (place.state == State::waiting) close(place.bracket);
  if (place.state == State::promoted) place.state = State::training;
}

void HyperBandState::end(TrialId trial) {
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

Choice HyperBandState::choose(const Pool& pool) {
  while (!losers_.empty() && !places_.contains(losers_.front())) losers_.pop_front();
  if (!losers_.empty()) return Choice::stop(losers_.front());
  while (!winners_.empty() && !still_promoted(winners_.front())) winners_.pop_front();
  if (!winners_.empty()) return Choice::resume(winners_.front().trial);
  if (pool.more_trials) return Choice::start_new();
  // There are no more trials for the last bracket: it continues with those it has.
  if (!brackets_.empty() && !brackets_.back().closed && brackets_.back().training == 0) {
    if (const auto trial = first_to_resume(brackets_.back())) return Choice::resume(*trial);
  }
  return Choice::wait();
}

std::string HyperBandState::why(TrialId trial, const LossText& losses) const {
  const auto found = verdicts_.find(trial);
  if (found == verdicts_.end()) return {};
  const auto place = places_.find(trial);
  const std::string text = found->second.text(losses);
  return place == places_.end() ? text : detail::format("in bracket {} {}", place->second.bracket + 1, text);
}

void HyperBandState::close(std::uint64_t number) {
  Bracket* bracket = find_bracket(number);
  if (bracket == nullptr || bracket->closed) return;
  bracket->closed = true;
  halve(number);
}

std::size_t HyperBandState::promotions(const Bracket& bracket, std::size_t rung,
                                       const std::vector<RungEntry>& arrived) const {
  const auto& plan = plans_[bracket.plan];
  const std::int64_t planned = plan[rung].trials * bracket.members / plan.front().trials;
  const auto quota = std::min(static_cast<std::size_t>(std::max<std::int64_t>(1, planned)), arrived.size());
  const auto finite = static_cast<std::size_t>(
      std::count_if(arrived.begin(), arrived.end(), [](const RungEntry& e) { return e.loss != worst_loss; }));
  return finite > 0 ? std::min(quota, finite) : quota;
}

std::optional<TrialId> HyperBandState::first_to_resume(const Bracket& bracket) const {
  auto arrived = bracket.arrived;
  std::sort(arrived.begin(), arrived.end());
  for (std::size_t rung = bracket.rung + 1; !arrived.empty(); ++rung) {
    arrived.resize(promotions(bracket, rung, arrived));
    for (const RungEntry& e : arrived)
      if (places_.at(e.trial).steps < plans_[bracket.plan][rung].steps) return e.trial;
  }
  return std::nullopt;
}

void HyperBandState::halve(std::uint64_t number) {
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

HyperBandState& prepared(HyperBand& hyperband) {
  HyperBandState& state = hyperband.state_.made();
  if (!state.ready()) state = HyperBandState(hyperband.max_steps, hyperband.reduction_factor);
  return state;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void HyperBand::on_create(TrialId trial) { detail::prepared(*this).create(trial); }

Decision HyperBand::on_report(const Progress& progress) {
  return detail::prepared(*this).report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()),
                                        progress.over);
}

void HyperBand::on_resume(TrialId trial) { detail::prepared(*this).resume(trial); }

void HyperBand::on_end(TrialId trial, TrialState) { detail::prepared(*this).end(trial); }

Choice HyperBand::choose_next(const Pool& pool) { return detail::prepared(*this).choose(pool); }

std::string HyperBand::why(TrialId trial, const LossText& losses) const {
  return state_.or_default().why(trial, losses);
}

}  // namespace hypertune::inline v0
