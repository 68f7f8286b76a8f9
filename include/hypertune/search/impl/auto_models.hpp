// AutoModels: definitions.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/auto_models.hpp>
#include <hypertune/search/detail/gp/convergence.hpp>
#include <hypertune/search/detail/gp/state.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::detail {

Indirect<AutoModels> AutoModels::prepared(const SearchSpace& space, const SearchContext& goal) {
  AutoModels models;
  models.space_ = space;
  models.goal_ = goal;
  models.parallelism_ = static_cast<std::size_t>(std::max(1, goal.parallelism));
  models.gp_.prepare(space, goal);
  return Indirect(std::move(models));
}

AnySearcher AutoModels::cma_es() { return CmaEs{}; }

Suggestion AutoModels::suggest(const Ask& ask, Tpe& tpe) {
  switch (turn()) {
    case Turn::gp: return gp_.suggest(ask);
    case Turn::tpe: return tpe.suggest(ask);
    case Turn::found: return started_ % 4 == 3 || gp_.can_polish() ? gp_.suggest(ask) : tpe.suggest(ask);
    case Turn::other: break;
  }
  // Must not change the state: a new search begins when the trial has started, as a replay sees only observations.
  Suggestion suggestion = other_ && !done() ? other_->suggest(ask) : next_other().suggest(ask);
  // It does not know the points that the other searchers have tried.
  if (suggestion.kind != Suggestion::Kind::point || gp_.tried(suggestion.point)) return gp_.suggest(ask);
  return suggestion;
}

void AutoModels::observe(const Observation& o, bool asked) {
  if (o.kind == Observation::Kind::started) {
    if (asked && turn() == Turn::other) {
      if (!other_ || done()) begin_other();
      others_.insert(o.trial);
    }
    ++started_;
  }
  if (o.steps > 0) steps_[o.trial] = std::max(steps_[o.trial], o.steps);
  gp_.observe(o);
  if (!others_.contains(o.trial)) return;
  other_->observe(o);
  if (o.kind == Observation::Kind::ended) others_.erase(o.trial);
}

bool AutoModels::quick(const Tpe& tpe) const {
  const Turn whose = turn();
  return whose == Turn::gp ? gp_.quick() : whose == Turn::tpe && tpe.quick();
}

auto AutoModels::turn() const -> Turn {
  const Turn in_turn = started_ % 2 == 1 ? Turn::tpe : Turn::gp;
  if (cut_short()) return in_turn;
  if (!gp_.stagnant()) return Turn::gp;
  if (!gp_.converged()) return in_turn;
  return started_ % 2 == 0 ? Turn::other : Turn::found;  // which of the two is decided only if needed
}

GaussianProcess AutoModels::next_other() const {
  SearchContext goal = goal_;
  goal.seed = derived_rng(goal_.seed, {others_begun_, 0x6175746fU})();
  GaussianProcess next;
  next.prepare(*space_, goal);
  return next;
}

void AutoModels::begin_other() {
  for (const auto* search : {&gp_, other_ ? &*other_ : nullptr})
    if (search != nullptr && search->best() != nullptr && !known(search->best()->features))
      minima_.push_back(search->best()->features);
  other_ = next_other();
  others_.clear();
  ++others_begun_;
}

bool AutoModels::done() const {
  const auto *best = other_->best(), *first = gp_.best();
  if (best == nullptr || first == nullptr) return false;
  return known(best->features) || near(best->features, first->features) ||
         other_->stagnant(best->standing() > first->standing() ? 1e-3 : 1e-5);
}

bool AutoModels::cut_short() const {
  if (steps_.size() < parallelism_ + 4) return false;
  int longest = 0;
  for (const auto& [trial, steps] : steps_) longest = std::max(longest, steps);
  std::size_t cut = 0;
  const std::size_t older = steps_.size() - parallelism_;
  auto at = steps_.begin();
  for (std::size_t i = 0; i < older; ++i, ++at) cut += 2 * at->second <= longest;
  return 2 * cut > older;
}

bool AutoModels::known(const std::vector<double>& features) const {
  return std::any_of(minima_.begin(), minima_.end(), [&](const auto& minimum) { return near(features, minimum); });
}

bool AutoModels::near(const std::vector<double>& a, const std::vector<double>& b) const {
  return gp::distance(gp_.state_->encoding, a, b) < 0.05;
}

}  // namespace hypertune::inline v0::detail
