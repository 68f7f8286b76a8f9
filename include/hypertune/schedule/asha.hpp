// ASHA: asynchronous successive halving, in its stopping and its promotion form.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

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

}  // namespace detail

/// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020).
/// Trials are compared at rungs of grace_period, grace_period * reduction_factor, grace_period * reduction_factor^2, …
/// steps; about one in `reduction_factor` passes each rung.
///
/// In the stopping form a trial ends at a rung unless it is among the best floor(n / reduction_factor) of the n trials
/// that have reached that rung so far, itself included; while n < reduction_factor every trial passes. In the promotion
/// form every trial pauses at its rung. A free slot resumes the best trial that is in the top 1/reduction_factor of its
/// rung and was not promoted yet, the highest rung first; a new trial starts only if there is none.
///
/// A trial whose reports skip rungs is compared at each rung that it passed. A loss of NaN or +infinity is never among
/// the best of a rung that has a finite one. With several `brackets`, bracket b begins at grace_period *
/// reduction_factor^b. Trials are distributed over the brackets by their numbers, in Hyperband's proportions. Brackets
/// beyond the number of rungs are ignored.
///
/// A report costs O(log n) for n trials at the rung; 8 bytes (promotion: up to 48) are kept per trial and rung.
struct Asha {
  static constexpr const char* type = "asha";

  int grace_period = 1;      ///< steps of the first rung
  int max_steps = 81;        ///< steps after which a trial is complete
  int reduction_factor = 3;  ///< 2 or more: one in this many trials passes each rung
  int brackets = 1;          ///< ladders with a later and later first rung
  bool promotion = false;    ///< the promotion form, else the stopping form

  static void describe(auto& self, auto&& option) {
    option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
    option("max_steps", self.max_steps, at_least(1), "steps after which a trial is complete");
    option("reduction_factor", self.reduction_factor, at_least(2), "one in this many trials passes each rung");
    option("brackets", self.brackets, at_least(1), "ladders with a later and later first rung");
    option("promotion", self.promotion, "trials pause at rungs, the best are resumed; else the bad ones stop");
  }
  void check() const;

  detail::AshaState state_{};

  Decision on_report(const Progress& progress);

  void on_resume(TrialId trial) {
    prepare();
    if (promotion) state_.promoting[bracket_of(trial)].resume(trial);
  }

  void on_end(TrialId trial, TrialState);
  Choice choose_next(const Pool& pool);
  std::string why(TrialId trial, const LossText& losses) const;
  std::string name() const { return promotion ? "asha (promotion)" : "asha"; }

 private:
  void prepare();
  std::size_t bracket_of(TrialId trial) const;
};

}  // namespace hypertune::inline v0
