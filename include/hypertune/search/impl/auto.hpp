// Auto: definitions.
#pragma once

#include <hypertune/search/auto.hpp>
#include <hypertune/search/detail/auto_models.hpp>
#include <hypertune/search/detail/auto_state.hpp>
#include <hypertune/search/random.hpp>

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
  space_ = space;
  budget_ = AskBudget(goal);
  tried_ = Tried(space);
  finite_ = Tried::combinations(space) > 0;
  for (std::size_t d = 0; d < space.size(); ++d) dimensions_ += space.domain(d).options != 1;
  AutoChoice choice = auto_choice(space, goal);
  if ((choice == AutoChoice::gp || choice == AutoChoice::cma_es) && !AutoModels::defined()) {
    choice = AutoChoice::tpe;
    if (goal.note)
      goal.note(
          "this program has no models, so 'auto' searches by TPE: for better results with few trials, include "
          "<hypertune/src/models.hpp> beside <hypertune/src/core.hpp>, or link hypertune::hypertune");
  }
  switch (choice) {
    case AutoChoice::random: chosen_ = Random{}; break;
    case AutoChoice::cma_es: chosen_ = AutoModels::cma_es(); break;
    case AutoChoice::gp: models_ = AutoModels::prepared(space, goal); [[fallthrough]];
    case AutoChoice::tpe:
      tpe_ = Tpe{};
      tpe_->prepare(space, goal);
      return;
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
  return models_->suggest(ask, *tpe_);
}

void AutoState::observe(const Observation& o) {
  if (chosen_) {
    if (finite_ && o.kind == Observation::Kind::started) tried_.add(o.point);
    return chosen_->observe(o);
  }
  bool asked = false;
  if (o.kind == Observation::Kind::started) {
    // The state is the same as when suggest() was called for this trial.
    const Means by = means();
    asked = by == Means::all;
    budget_.started(cost(by));
    tried_.add(o.point);
  }
  if (o.kind == Observation::Kind::ended) {
    budget_.ended(o.elapsed);
    ++ended_;
  }
  tpe_->observe(o);
  if (models_) models_->observe(o, asked);
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
  return by == Means::tpe ? tpe_->quick() : models_->quick(*tpe_);
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
