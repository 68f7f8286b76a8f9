// Tpe: definitions.
#pragma once

#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tpe_state.hpp>
#include <hypertune/search/tpe.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

std::uint64_t row_hash(std::span<const double> row) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const double x : row) {
    hash = (hash ^ (is_active(x) ? std::bit_cast<std::uint64_t>(x + 0.0) : 1)) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 33U;
  }
  return hash;
}

/// Keeps at most `most` of `all`, evenly selected. Returns the weight that each of them then has.
double thin_out(std::vector<const double*>& all, std::size_t most) {
  if (all.size() <= most) return 1;
  const double weight = static_cast<double>(all.size()) / static_cast<double>(most);
  for (std::size_t i = 0; i < most; ++i) all[i] = all[i * all.size() / most];
  all.resize(most);
  return weight;
}

/// The logarithm of the density ratio relative to the mixture of both; c-TPE multiplies these ratios.
double relative_ratio(const ParzenPair& pair, const double* row) {
  const double difference = pair.bad.log_density(row) - pair.good.log_density(row);
  return -std::log(pair.share + (1 - pair.share) * std::exp(std::min(difference, 600.0)));
}

}  // namespace detail

void Tpe::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::TpeState());
  state_->space = space;
  state_->goal = goal;
  state_->model = detail::ParzenSpace(space);
  state_->trials = detail::TrialRanking(goal.objectives, goal.constraints);
  for (std::size_t d = 0; d < state_->model.size() && d < detail::SobolSequence::max_dimensions; ++d)
    state_->sobol_dimensions.push_back(state_->model[d].at);
  state_->sobol = detail::SobolSequence(state_->sobol_dimensions.size(), true, goal.seed);
  state_->constrained = !space.model().constraints.empty();
  constexpr std::size_t max_branches = 16;
  for (std::size_t m = 0; m < state_->model.size(); ++m) {
    const std::size_t at = state_->model[m].at;
    const bool opens = std::any_of(space.model().dimensions.begin(), space.model().dimensions.end(),
                                   [&](const detail::Dimension& dimension) {
                                     return std::any_of(dimension.when.begin(), dimension.when.end(),
                                                        [&](const auto& c) { return c.parent == at; });
                                   });
    if (opens && state_->model[m].options > 0 && state_->model[m].options <= max_branches) state_->gates.push_back(m);
  }
  state_->tried = detail::Tried(space);
  state_->ties = detail::Ties(space);
}

void Tpe::observe(const Observation& o) {
  state_->ties.observe(o);
  const auto [slot, is_new] = state_->trials.observe(o);
  if (!is_new) return;
  state_->rows.resize(state_->rows.size() + state_->model.size());
  double* own = state_->rows.data() + slot * state_->model.size();
  state_->model.to_model(*state_->space, o.point, own);
  state_->seen.insert(detail::row_hash({own, state_->model.size()}));
  state_->tried.add(o.point);
}

bool Tpe::quick() const {
  if (!state_) return false;
  const auto& s = *state_;
  return s.goal.objectives < 2 && s.goal.constraints == 0 &&
         detail::tpe_ask_seconds(s.model.size(), s.trials.judged()) <= detail::AskBudget::quick;
}

const double* Tpe::row(std::size_t slot) const { return state_->rows.data() + slot * state_->model.size(); }

std::size_t Tpe::startup_count() const {
  if (startup_trials > 0) return std::max<std::size_t>(2, static_cast<std::size_t>(startup_trials));
  if (state_->goal.samples <= 0) return 10;
  return std::clamp<std::size_t>(static_cast<std::size_t>(state_->goal.samples) / 4, 4, 10);
}

Point Tpe::point(std::span<const double> row, Rng& rng) const {
  std::vector<double> unit(state_->space->size(), 0.5);
  for (std::size_t d = 0; d < row.size(); ++d)
    if (is_active(row[d])) unit[state_->model[d].at] = state_->model.to_unit(d, row[d]);
  return state_->space->from_unit(unit, rng);
}

Point Tpe::startup_point(Rng& rng) const {
  const SearchSpace& space = *state_->space;
  const std::size_t index = state_->trials.size();
  Point result;
  const bool by_prior = space.has_prior() && prior_strength > 0;
  if (by_prior && index % 2 == 1) {
    result = space.sample_prior(rng);
  } else {
    std::vector<double> unit(space.size());
    for (double& u : unit) u = uniform01(rng);
    for (std::size_t i = 0; i < state_->sobol_dimensions.size(); ++i)
      unit[state_->sobol_dimensions[i]] = state_->sobol.at(index % detail::SobolSequence::length, i);
    if (by_prior && index == 0)  // the centre of the user's prior
      for (std::size_t d = 0; d < unit.size(); ++d) unit[d] = space.prior_center(d).value_or(unit[d]);
    result = space.from_unit(unit, rng);
  }
  const auto fresh = [&] { return !state_->tried.contains(result); };
  if (state_->constrained && !space.feasible(result)) result = space.sample(rng);
  for (int tries = 0; tries < 50 && !fresh(); ++tries) result = space.sample(rng);
  return result;
}

void Tpe::fit(detail::ParzenPair& pair, const std::vector<const double*>& good, const std::vector<double>& good_weights,
              const std::vector<const double*>& bad, const std::vector<double>& bad_weights) const {
  constexpr double spread = 0.6;         // of the good trials' bandwidths, times Scott's factor
  constexpr double flip = 0.3;           // of categorical kernels
  constexpr double narrowest = 0.002;    // smallest bandwidth of the good trials
  constexpr double wide_at_most = 0.06;  // smallest bandwidth of the others, less in few dimensions …
  constexpr double wide_of_good = 0.15;  // … and as a share of the good ones'
  const std::size_t dims = state_->model.size();
  const double wide = wide_at_most * std::min(1.0, static_cast<double>(dims) / 5);
  const double scott = std::pow(static_cast<double>(good.size()), -1.0 / (static_cast<double>(dims) + 4));
  pair.good.fit(state_->model, good, good_weights,
                {.factor = spread * scott, .least = narrowest, .flip = flip, .neighbours = false});
  std::vector<double> widths(dims, 0.0);
  for (std::size_t d = 0; d < dims; ++d) widths[d] = wide_of_good * pair.good.typical_bandwidth(d);
  pair.bad.fit(state_->model, bad, bad_weights, {.factor = 1, .least = wide, .flip = flip, .widths = widths});
  double total = 0;
  for (const double w : bad_weights) total += w;
  pair.share = static_cast<double>(good.size()) / (static_cast<double>(good.size()) + total);
}

/// Now and then returns a branch to explore, with a probability inverse to how often it was tried.
std::optional<detail::TpeBranch> Tpe::other_branch(Rng& rng) const {
  constexpr double seldom = 0.2;
  if (state_->gates.empty() || state_->goal.objectives > 1 || uniform01(rng) >= seldom) return std::nullopt;
  const double u = uniform01(rng) * static_cast<double>(state_->gates.size());
  const std::size_t gate = state_->gates[static_cast<std::size_t>(u)];
  std::vector<double> weights(state_->model[gate].options, 1.0);  // by value: the number of trials with it, plus one
  for (std::size_t slot = 0; slot < state_->trials.size(); ++slot)
    if (const double x = row(slot)[gate]; is_active(x)) ++weights[static_cast<std::size_t>(x)];
  double total = 0;
  for (double& w : weights) total += w = 1 / w;
  std::size_t value = 0;
  for (double left = uniform01(rng) * total - weights[0]; left >= 0 && value + 1 < weights.size();)
    left -= weights[++value];
  return detail::TpeBranch{gate, static_cast<double>(value)};
}

/// Fits the densities of the objective, within the branch if there is one. False if too few trials of a branch are
/// known.
bool Tpe::fit_objective(detail::ParzenPair& pair, const std::optional<detail::TpeBranch>& branch) const {
  constexpr std::size_t max_bad = 200, max_pending = 100;  // kernels: bounds the time of a suggestion
  const auto& trials = state_->trials;
  const auto inside = [&](std::uint32_t slot) { return !branch || row(slot)[branch->gate] == branch->value; };
  std::vector<std::uint32_t> own;
  std::size_t useful = trials.useful();
  if (branch) {
    for (const std::uint32_t slot : trials.order())
      if (inside(slot)) own.push_back(slot);
    useful = static_cast<std::size_t>(
        std::count_if(own.begin(), own.end(), [&](std::uint32_t slot) { return std::isfinite(trials[slot].loss); }));
    if (useful < 4) return false;
  }
  const auto order = branch ? std::span<const std::uint32_t>(own) : trials.order();
  const std::size_t wanted = static_cast<std::size_t>(std::ceil(gamma * static_cast<double>(order.size())));
  const std::size_t bound = static_cast<std::size_t>(max_good) * (state_->goal.objectives > 1 ? 2 : 1);
  const std::size_t count =
      std::min(std::clamp<std::size_t>(wanted, 2, std::max<std::size_t>(2, bound)), std::max<std::size_t>(1, useful));
  const auto best = branch ? std::vector<std::uint32_t>(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count))
                           : trials.best(count);
  std::vector<const double*> good;
  for (const std::uint32_t slot : best) good.push_back(row(slot));

  // Weights by improvement over the first trial that is not good, if losses can be compared; else by rank. All are
  // positive.
  std::vector<double> weights(best.size(), 1.0);
  if (state_->goal.objectives < 2) {
    const bool alike =
        count < order.size() && trials.alike(order[0], order[count]) && std::isfinite(trials[order[count]].loss);
    double sum = 0;
    for (std::size_t i = 0; i < best.size(); ++i) {
      weights[i] = alike ? trials[order[count]].loss - trials[best[i]].loss : static_cast<double>(best.size() - i);
      sum += weights[i];
    }
    for (double& w : weights)
      w = sum > 0 && std::isfinite(sum) ? std::max(w / sum * static_cast<double>(best.size()), 1e-6) : 1.0;
  }

  std::vector<std::uint32_t> chosen = best;
  std::sort(chosen.begin(), chosen.end());
  const bool learns_constraints = state_->goal.constraints > 0;
  const double threshold = trials[best.back()].loss;
  std::vector<const double*> bad;
  const bool prefix = state_->goal.objectives < 2;  // the good trials are the first of the order
  bad.reserve(order.size());
  for (const std::uint32_t slot : order.subspan(prefix ? best.size() : 0)) {
    if (!prefix && std::binary_search(chosen.begin(), chosen.end(), slot)) continue;
    // A trial that is good except for a constraint is evidence only against the constraint's region: fit_constraint().
    if (learns_constraints && trials[slot].violation > 0 && trials[slot].loss <= threshold) continue;
    bad.push_back(row(slot));
  }
  const double weight = detail::thin_out(bad, max_bad);
  std::vector<double> bad_weights(bad.size(), weight);
  const auto pending = trials.pending();
  for (std::size_t i = pending.size() - std::min(pending.size(), max_pending); i < pending.size(); ++i)
    if (inside(pending[i]) &&
        (!trials[pending[i]].judged || std::binary_search(chosen.begin(), chosen.end(), pending[i]))) {
      bad.push_back(row(pending[i]));
      bad_weights.push_back(1);
    }
  fit(pair, good, weights, bad, bad_weights);
  return true;
}

/// Fits the densities of a constraint. False if the trials do not show a difference.
bool Tpe::fit_constraint(std::size_t constraint, detail::ParzenPair& pair) const {
  constexpr std::size_t most = 80;
  const auto& trials = state_->trials;
  std::vector<const double*> met, broken;
  std::vector<std::pair<double, std::uint32_t>> by_value;
  for (const std::uint32_t slot : trials.order()) {
    if (constraint >= trials[slot].constraints.size() || std::isnan(trials[slot].constraints[constraint])) continue;
    const double value = trials[slot].constraints[constraint];
    by_value.emplace_back(value, slot);
    (value <= 0 ? met : broken).push_back(row(slot));
  }
  if (broken.empty() || by_value.size() < 2) return false;
  if (met.empty()) {  // prefer those that violate it least
    std::sort(by_value.begin(), by_value.end());
    const std::size_t count = std::max<std::size_t>(1, by_value.size() / 10);
    broken.clear();
    for (std::size_t i = 0; i < by_value.size(); ++i) (i < count ? met : broken).push_back(row(by_value[i].second));
  }
  const double all_met = static_cast<double>(met.size()), all_broken = static_cast<double>(broken.size());
  const double met_weight = detail::thin_out(met, most), broken_weight = detail::thin_out(broken, most);
  fit(pair, met, std::vector<double>(met.size(), met_weight), broken,
      std::vector<double>(broken.size(), broken_weight));
  pair.share = all_met / (all_met + all_broken);
  return true;
}

Suggestion Tpe::suggest(const Ask& ask) const {
  const SearchSpace& space = *state_->space;
  Suggestion suggestion = state_->model.size() == 0 ? Suggestion(space.sample(ask.rng)) : proposed(ask.rng);
  return state_->tried.replaced_if_tried(std::move(suggestion), ask.rng);
}

Suggestion Tpe::proposed(Rng& rng) const {
  const SearchSpace& space = *state_->space;
  const auto& model = state_->model;
  if (state_->trials.judged() < startup_count() || state_->trials.useful() < 2) return startup_point(rng);

  detail::ParzenPair objective;
  auto branch = other_branch(rng);
  if (!fit_objective(objective, branch)) {
    for (int tries = 0; tries < 100; ++tries) {
      Point drawn = space.sample(rng);
      std::vector<double> own(model.size());
      model.to_model(space, drawn, own.data());
      if (own[branch->gate] == branch->value && !state_->tried.contains(drawn)) return drawn;
    }
    return startup_point(rng);
  }
  std::vector<detail::ParzenPair> constraints(state_->goal.constraints);
  std::erase_if(constraints, [&, i = std::size_t{0}](auto& pair) mutable { return !fit_constraint(i++, pair); });
  const double trust = space.has_prior() ? prior_strength / static_cast<double>(state_->trials.judged()) : 0.0;

  const std::size_t dims = model.size();
  std::vector<double> row(dims), other(dims), best(dims);
  Point best_point;
  double best_score = -std::numeric_limits<double>::infinity();
  bool found = false;
  const bool make_points = model.conditional() || state_->constrained || trust > 0;
  const auto consider = [&] {
    Point made;
    if (branch) row[branch->gate] = branch->value;
    if (make_points) {
      made = point(row, rng);
      for (std::size_t d = 0; d < dims; ++d)
        if (!is_active(made[model[d].at])) row[d] = inactive;
    }
    if (state_->seen.contains(detail::row_hash(row))) return;
    if (state_->ties.any() && state_->ties.contains(make_points ? made : point(row, rng))) return;
    if (state_->constrained && !space.feasible(made)) return;
    double score = trust > 0 ? trust * space.log_prior(made) : 0;
    if (constraints.empty()) {
      score += objective.good.log_density(row.data());
      const double too_much = found ? score - best_score : std::numeric_limits<double>::infinity();
      score -= objective.bad.log_density(row.data(), too_much);
    } else {
      score += detail::relative_ratio(objective, row.data());
    }
    for (const auto& pair : constraints) score += detail::relative_ratio(pair, row.data());
    if (found && !(score > best_score)) return;
    found = true;
    best_score = score;
    best = row;
    best_point = std::move(made);
  };

  constexpr double crossed = 0.3, exchanged = 0.3;  // share of candidates that recombine, and of their coordinates
  const double by_prior = std::min(0.5, trust / 2);
  for (int i = 0; i < ei_candidates; ++i) {
    if (trust > 0 && uniform01(rng) < by_prior) {
      model.to_model(space, space.sample_prior(rng), row.data());
      for (std::size_t d = 0; d < dims; ++d)
        if (!is_active(row[d])) row[d] = objective.good.coordinate(d, 0, 1, rng);
    } else {
      objective.good.sample(rng, row.data());
      if (uniform01(rng) < crossed) {
        objective.good.sample(rng, other.data());
        for (std::size_t d = 0; d < dims; ++d)
          if (uniform01(rng) < exchanged) row[d] = other[d];
      }
    }
    consider();
  }
  // Few candidates may be feasible or new: try more of them, of all kinds.
  for (int tries = 0; tries < 200 && !found; ++tries) {
    if (tries % 2 == 0)
      objective.good.sample(rng, row.data());
    else
      model.to_model(space, space.sample(rng), row.data());
    for (std::size_t d = 0; d < dims; ++d)
      if (!is_active(row[d])) row[d] = objective.good.coordinate(d, 0, 1, rng);
    consider();
  }
  if (!found) {
    const auto left = state_->tried.untried();
    if (!left) return space.sample(rng);
    if (left->empty()) return Suggestion::exhausted();
    constexpr std::size_t most = 500;
    branch.reset();
    for (std::size_t i = 0; i < std::min(most, left->size()); ++i) {
      model.to_model(space, (*left)[i * left->size() / std::min(most, left->size())], row.data());
      consider();
    }
    if (!found) return space.sample(rng);
    return make_points ? best_point : point(best, rng);
  }

  // Returns the best candidate unchanged half of the time. If it were always refined, suggestions would soon lie next
  // to the best trial, where little is left to learn about the branch or the integers around it.
  constexpr double refined = 0.5;
  if (uniform01(rng) >= refined) return make_points ? best_point : point(best, rng);
  constexpr int rounds = 4;
  constexpr double shrink = 0.3;
  double factor = 1;
  for (int round = 0; round < rounds; ++round) {
    factor *= shrink;
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): consider() changes `best`
    const std::vector<double> center = best;
    for (int i = 0; i < ei_candidates / rounds; ++i) {
      for (std::size_t d = 0; d < dims; ++d) {
        const auto k = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(objective.good.kernels()));
        row[d] = is_active(center[d]) ? objective.good.nearby(d, center[d], factor, rng)
                                      : objective.good.coordinate(d, k, 1, rng);
      }
      consider();
    }
  }
  return make_points ? best_point : point(best, rng);
}

}  // namespace hypertune::inline v0
