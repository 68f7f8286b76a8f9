// Auto: the searcher that fits the problem.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

enum class AutoChoice : std::uint8_t { random, gp, tpe, cma_es };

/// What fits a problem, by what is known before it begins.
inline AutoChoice auto_choice(const SearchSpace& space, const SearchGoal& goal) {
  std::size_t numeric = 0, discrete = 0;
  bool conditional = false;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const DomainInfo& info = space.domain(d);
    if (info.kind == DomainKind::derived || info.kind == DomainKind::constant || info.grid) continue;
    const bool number = info.kind == DomainKind::real || info.kind == DomainKind::integer;
    ++(number ? numeric : discrete);
    conditional = conditional || space.conditional(d);
  }
  const std::size_t dimensions = numeric + discrete;
  if (dimensions == 0) return AutoChoice::random;
  const bool many =
      goal.samples > 2000;  // a model of all results would learn little more, and costs more than it gains
  const bool finite = Tried::combinations(space) > 0;  // which CMA-ES does not know
  if (goal.objectives == 1 && discrete == 0 && !conditional && !finite && (many || dimensions > 60))
    return AutoChoice::cma_es;
  if (many || dimensions > 60) return AutoChoice::tpe;
  return AutoChoice::gp;
}

}  // namespace detail

/// Chooses by dimensions, types, budget and objectives, once, before the first trial: a Gaussian process for the usual
/// case (up to 60 dimensions and 2,000 trials); CMA-ES for larger problems of numbers alone; TPE for larger ones with
/// choices, conditions or several objectives. What was chosen stands in name().
///
/// The rules rest on benchmarks/quality: with up to 200 trials the Gaussian process was the best or among the best on
/// most problems, by orders of magnitude where they are smooth. Where it was not, its model did not fit what is
/// near the best (kinks, valleys at a bound, many small basins) or had written off a branch, and it brought nothing new
/// for many trials in a row. So while GaussianProcess::settled() says so, every other trial is TPE's, which assumes
/// less and has seen all results, too; as soon as either finds something better it is the model's turn again.
///
/// Where GaussianProcess::converged() says that a minimum was found, half of the trials go to another search of the
/// same kind, which begins with an even design of its own and knows of nothing else, so that it is not drawn to where
/// the first one is; the first has the rest while it finds further digits, then shares it with TPE. When the other one
/// is in a known minimum, or done with one that is worse, a new one begins, as CMA-ES does by restarts (Auger and
/// Hansen 2005) and TuRBO by new trust regions.
///
/// Suggestions take no longer than trials do (detail::AskBudget): where trials are so cheap that the model would be
/// what is waited for, it has its turn when its time has been earned, TPE the rest, and where even that takes longer
/// than trials the points are random.
///
/// Where most trials are cut short (by ASHA, say), every other trial is TPE's from the start, which ranks a trial by
/// how far it came, as in BOHB: what the model makes of the first steps may be far from the end.
struct Auto {
  static constexpr const char* type = "auto";

  std::optional<AnySearcher> chosen_{};
  std::optional<GaussianProcess> gp_{};  // instead of chosen_: this and …
  std::optional<Tpe> tpe_{};             // … this
  std::optional<SearchSpace> space_{};
  SearchGoal goal_{};
  std::optional<GaussianProcess> other_{};     // for other minima
  std::set<TrialId> others_{};                 // its trials that are under way
  std::vector<std::vector<double>> minima_{};  // where a search has ended
  std::size_t others_begun_ = 0;
  std::size_t started_ = 0, parallelism_ = 1;
  std::map<TrialId, int> steps_{};  // that each trial has done, by what it reported
  detail::AskBudget budget_{};
  detail::Tried tried_{};
  bool finite_ = false;
  std::size_t dimensions_ = 0, ended_ = 0;

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    *this = {};
    parallelism_ = static_cast<std::size_t>(std::max(1, goal.parallelism));
    space_ = space;
    goal_ = goal;
    budget_ = detail::AskBudget(goal);
    tried_ = detail::Tried(space);
    finite_ = detail::Tried::combinations(space) > 0;
    for (std::size_t d = 0; d < space.size(); ++d) dimensions_ += space.domain(d).options != 1;
    switch (detail::auto_choice(space, goal)) {
      case detail::AutoChoice::random: chosen_ = Random{}; break;
      case detail::AutoChoice::gp:
        gp_ = GaussianProcess{};
        tpe_ = Tpe{};
        gp_->prepare(space, goal);
        tpe_->prepare(space, goal);
        return;
      case detail::AutoChoice::tpe:
        tpe_ = Tpe{};
        tpe_->prepare(space, goal);
        return;
      case detail::AutoChoice::cma_es: chosen_ = CmaEs{}; break;
    }
    chosen_->prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask) {
    if (chosen_) return tried_.all() ? Suggestion::exhausted() : chosen_->suggest(ask);
    switch (means()) {
      case Means::random:
        for (int tries = 0; tries < 20; ++tries)
          if (Point drawn = space_->sample(ask.rng); !tried_.contains(drawn)) return drawn;
        return tpe_->suggest(ask);  // there may be nothing else
      case Means::tpe: return tpe_->suggest(ask);
      case Means::all: break;
    }
    switch (turn()) {
      case Turn::gp: return gp_->suggest(ask);
      case Turn::tpe: return tpe_->suggest(ask);
      case Turn::found: return started_ % 4 == 3 || gp_->polishes() ? gp_->suggest(ask) : tpe_->suggest(ask);
      case Turn::other: break;
    }
    // Nothing changes here: a new one begins when the trial has started, which is all that a replay hears of.
    const Suggestion suggestion = other_ && !done() ? other_->suggest(ask) : next_other().suggest(ask);
    // It does not know what the others tried.
    if (suggestion.kind != Suggestion::Kind::point || gp_->tried(suggestion.point)) return gp_->suggest(ask);
    return suggestion;
  }
  void observe(const Observation& o) {
    if (chosen_) {
      if (finite_ && o.kind == Observation::Kind::started) tried_.add(o.point);
      return chosen_->observe(o);
    }
    if (o.kind == Observation::Kind::started) {
      // As it was when suggest() was asked for this trial.
      const Means by = means();
      if (by == Means::all && turn() == Turn::other) {
        if (!other_ || done()) begin_other();
        others_.insert(o.trial);
      }
      budget_.started(cost(by));
      tried_.add(o.point);
      ++started_;
    }
    if (o.kind == Observation::Kind::ended) {
      budget_.ended(o.elapsed);
      ++ended_;
    }
    tpe_->observe(o);
    if (!gp_) return;
    if (o.steps > 0) steps_[o.trial] = std::max(steps_[o.trial], o.steps);
    gp_->observe(o);
    if (!others_.contains(o.trial)) return;
    other_->observe(o);
    if (o.kind == Observation::Kind::ended) others_.erase(o.trial);
  }
  std::string name() const {
    return gp_ ? "auto: gp" : tpe_ ? "auto: tpe" : chosen_ ? "auto: " + chosen_->name() : "auto";
  }
  bool cheap() const { return chosen_ && chosen_->cheap(); }
  static constexpr bool multi_objective = true;

  enum class Means : std::uint8_t { all, tpe, random };
  /// What the next suggestion may be made by.
  Means means() const {
    if (gp_ && budget_.affords(cost(Means::all))) return Means::all;
    return budget_.affords(cost(Means::tpe)) ? Means::tpe : Means::random;
  }
  Seconds cost(Means by) const {
    return by == Means::all   ? detail::gp_ask_seconds(dimensions_, ended_)
           : by == Means::tpe ? detail::tpe_ask_seconds(dimensions_, ended_)
                              : 0;
  }

  enum class Turn : std::uint8_t { gp, tpe, found, other };
  /// Whose turn the next trial is; `found`: the first one's or TPE's, once there is a minimum.
  Turn turn() const {
    const Turn in_turn = started_ % 2 == 1 ? Turn::tpe : Turn::gp;
    if (cut_short()) return in_turn;
    if (!gp_->settled()) return Turn::gp;
    if (!gp_->converged()) return in_turn;
    return started_ % 2 == 0 ? Turn::other : Turn::found;  // which of the two is asked only where it matters
  }
  GaussianProcess next_other() const {
    SearchGoal goal = goal_;
    goal.seed = derived_rng(goal_.seed, {others_begun_, 0x6175746fU})();
    GaussianProcess next;
    next.prepare(*space_, goal);
    return next;
  }
  void begin_other() {
    for (const auto* search : {&*gp_, other_ ? &*other_ : nullptr})
      if (search != nullptr && search->best() != nullptr && !known(search->best()->features))
        minima_.push_back(search->best()->features);
    other_ = next_other();
    others_.clear();
    ++others_begun_;
  }
  /// Whether the search for other minima came to one that is known, or to the end of one that is worse.
  bool done() const {
    const auto *best = other_->best(), *first = gp_->best();
    if (best == nullptr || first == nullptr) return false;
    return known(best->features) || near(best->features, first->features) ||
           other_->settled(best->standing() > first->standing() ? 1e-3 : 1e-5);
  }
  bool known(const std::vector<double>& features) const {
    return std::any_of(minima_.begin(), minima_.end(), [&](const auto& minimum) { return near(features, minimum); });
  }
  bool near(const std::vector<double>& a, const std::vector<double>& b) const {
    return detail::gp::distance(gp_->state_.encoding, a, b) < 0.05;
  }

  /// Whether most trials did not come half as far as the one that came farthest. The newest ones do not count: they may
  /// be on their way.
  bool cut_short() const {
    if (steps_.size() < parallelism_ + 4) return false;
    int longest = 0;
    for (const auto& [trial, steps] : steps_) longest = std::max(longest, steps);
    std::size_t cut = 0;
    const std::size_t older = steps_.size() - parallelism_;
    auto at = steps_.begin();
    for (std::size_t i = 0; i < older; ++i, ++at) cut += 2 * at->second <= longest;
    return 2 * cut > older;
  }
};

}  // namespace hypertune
