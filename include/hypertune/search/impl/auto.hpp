// Auto: definitions.
#pragma once

#include <hypertune/search/auto.hpp>
#include <hypertune/search/detail/auto_state.hpp>
#include <hypertune/search/gp/convergence.hpp>
#include <hypertune/search/gp/state.hpp>

#include <algorithm>

namespace hypertune::inline v0::detail {

AutoChoice auto_choice(const SearchSpace& space, const SearchContext& goal) {
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
  const bool many = goal.samples > 2000;  // a model of all results would learn little more and cost more than it gains
  const bool finite = Tried::combinations(space) > 0;  // CMA-ES does not handle this case
  if (goal.objectives == 1 && discrete == 0 && !conditional && !finite && (many || dimensions > 60))
    return AutoChoice::cma_es;
  if (many || dimensions > 60) return AutoChoice::tpe;
  return AutoChoice::gp;
}

void AutoState::prepare(const SearchSpace& space, const SearchContext& goal) {
  parallelism_ = static_cast<std::size_t>(std::max(1, goal.parallelism));
  space_ = space;
  goal_ = goal;
  budget_ = AskBudget(goal);
  tried_ = Tried(space);
  finite_ = Tried::combinations(space) > 0;
  for (std::size_t d = 0; d < space.size(); ++d) dimensions_ += space.domain(d).options != 1;
  switch (auto_choice(space, goal)) {
    case AutoChoice::random: chosen_ = Random{}; break;
    case AutoChoice::gp:
      gp_ = GaussianProcess{};
      tpe_ = Tpe{};
      gp_->prepare(space, goal);
      tpe_->prepare(space, goal);
      return;
    case AutoChoice::tpe:
      tpe_ = Tpe{};
      tpe_->prepare(space, goal);
      return;
    case AutoChoice::cma_es: chosen_ = CmaEs{}; break;
  }
  chosen_->prepare(space, goal);
}

Suggestion AutoState::suggest(const Ask& ask) {
  if (chosen_) return tried_.all_tried() ? Suggestion::exhausted() : chosen_->suggest(ask);
  switch (means()) {
    case Means::random:
      for (int tries = 0; tries < 20; ++tries)
        if (Point drawn = space_->sample(ask.rng); !tried_.contains(drawn)) return drawn;
      return tpe_->suggest(ask);  // there may be nothing else left
    case Means::tpe: return tpe_->suggest(ask);
    case Means::all: break;
  }
  switch (turn()) {
    case Turn::gp: return gp_->suggest(ask);
    case Turn::tpe: return tpe_->suggest(ask);
    case Turn::found: return started_ % 4 == 3 || gp_->can_polish() ? gp_->suggest(ask) : tpe_->suggest(ask);
    case Turn::other: break;
  }
  // Must not change the state: a new search begins when the trial has started, as a replay sees only observations.
  Suggestion suggestion = other_ && !done() ? other_->suggest(ask) : next_other().suggest(ask);
  // It does not know the points that the other searchers have tried.
  if (suggestion.kind != Suggestion::Kind::point || gp_->tried(suggestion.point)) return gp_->suggest(ask);
  return suggestion;
}

void AutoState::observe(const Observation& o) {
  if (chosen_) {
    if (finite_ && o.kind == Observation::Kind::started) tried_.add(o.point);
    return chosen_->observe(o);
  }
  if (o.kind == Observation::Kind::started) {
    // The state is the same as when suggest() was called for this trial.
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

Seconds AutoState::cost(Means by) const {
  return by == Means::all   ? gp_ask_seconds(dimensions_, ended_)
         : by == Means::tpe ? tpe_ask_seconds(dimensions_, ended_)
                            : 0;
}

bool AutoState::quick() const {
  if (chosen_) return chosen_->quick();
  const Means by = means();
  if (by == Means::random) return true;
  if (by == Means::tpe) return tpe_->quick();
  const Turn whose = turn();
  return whose == Turn::gp ? gp_->quick() : whose == Turn::tpe && tpe_->quick();
}

auto AutoState::turn() const -> Turn {
  const Turn in_turn = started_ % 2 == 1 ? Turn::tpe : Turn::gp;
  if (cut_short()) return in_turn;
  if (!gp_->stagnant()) return Turn::gp;
  if (!gp_->converged()) return in_turn;
  return started_ % 2 == 0 ? Turn::other : Turn::found;  // which of the two is decided only if needed
}

GaussianProcess AutoState::next_other() const {
  SearchContext goal = goal_;
  goal.seed = derived_rng(goal_.seed, {others_begun_, 0x6175746fU})();
  GaussianProcess next;
  next.prepare(*space_, goal);
  return next;
}

void AutoState::begin_other() {
  for (const auto* search : {&*gp_, other_ ? &*other_ : nullptr})
    if (search != nullptr && search->best() != nullptr && !known(search->best()->features))
      minima_.push_back(search->best()->features);
  other_ = next_other();
  others_.clear();
  ++others_begun_;
}

bool AutoState::done() const {
  const auto *best = other_->best(), *first = gp_->best();
  if (best == nullptr || first == nullptr) return false;
  return known(best->features) || near(best->features, first->features) ||
         other_->stagnant(best->standing() > first->standing() ? 1e-3 : 1e-5);
}

bool AutoState::cut_short() const {
  if (steps_.size() < parallelism_ + 4) return false;
  int longest = 0;
  for (const auto& [trial, steps] : steps_) longest = std::max(longest, steps);
  std::size_t cut = 0;
  const std::size_t older = steps_.size() - parallelism_;
  auto at = steps_.begin();
  for (std::size_t i = 0; i < older; ++i, ++at) cut += 2 * at->second <= longest;
  return 2 * cut > older;
}

bool AutoState::known(const std::vector<double>& features) const {
  return std::any_of(minima_.begin(), minima_.end(), [&](const auto& minimum) { return near(features, minimum); });
}

bool AutoState::near(const std::vector<double>& a, const std::vector<double>& b) const {
  return gp::distance(gp_->state_->encoding, a, b) < 0.05;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void Auto::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::AutoState());
  state_->prepare(space, goal);
}
Suggestion Auto::suggest(const Ask& ask) { return state_->suggest(ask); }
void Auto::observe(const Observation& o) { state_->observe(o); }
std::string Auto::name() const { return state_ ? state_->name() : "auto"; }
bool Auto::cheap() const { return state_ && state_->cheap(); }
bool Auto::quick() const { return state_ && state_->quick(); }

}  // namespace hypertune::inline v0
