// HyperBand: successive halving in brackets that trade the number of trials against the steps per trial.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0 {

/// How many trials of a bracket train to how many steps.
struct BracketRung {
  std::int64_t trials;
  int steps;
  friend bool operator==(const BracketRung&, const BracketRung&) = default;
};

/// The brackets of HyperBand, from the most exploring one on, each a list of rungs. As in table 1 of the paper: for
/// max_steps = 81 and reduction_factor = 3 the first has 81 trials at 1 step, 27 at 3, 9 at 9, 3 at 27 and 1 at 81.
std::vector<std::vector<BracketRung>> hyperband_brackets(int max_steps, int reduction_factor);

namespace detail {

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

}  // namespace detail

/// Hyperband (Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 2018). Trials
/// fill the brackets of hyperband_brackets() one after the other, over and over. In each bracket all trials train to
/// the first rung and pause there, the best 1/reduction_factor of them train to the next one, and so on to `max_steps`
/// steps. While a rung fills, free slots start trials of the next brackets, so that no slot is idle.
///
/// A failed trial makes room for the next best one. When there are no more trials, the last bracket continues with
/// those it has, in proportion. A NaN loss is promoted only if no loss is finite. A bracket therefore always ends. A
/// trial whose reports skip rungs is compared at each of them. The number of samples should be a multiple of a round
/// over all brackets (81 + 34 + 15 + 8 + 5 = 143 by default).
struct HyperBand {
  static constexpr const char* type = "hyperband";

  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
  }

  detail::HyperBandState state_{};

  void on_create(TrialId trial) { state().create(trial); }
  Decision on_report(const Progress& progress) {
    return state().report(progress.trial, progress.steps, detail::ranked_loss(progress.loss()), progress.over);
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

}  // namespace hypertune::inline v0
