// GaussianProcess: definitions.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/search/detail/gp/acquisition.hpp>
#include <hypertune/search/detail/gp/chain.hpp>
#include <hypertune/search/detail/gp/convergence.hpp>
#include <hypertune/search/detail/gp/data.hpp>
#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/fit.hpp>
#include <hypertune/search/detail/gp/history.hpp>
#include <hypertune/search/detail/gp/learner.hpp>
#include <hypertune/search/detail/gp/levels.hpp>
#include <hypertune/search/detail/gp/maximise.hpp>
#include <hypertune/search/detail/gp/model.hpp>
#include <hypertune/search/detail/gp/polish.hpp>
#include <hypertune/search/detail/gp/state.hpp>
#include <hypertune/search/detail/gp/transform.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>
#include <hypertune/search/detail/ties.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/gaussian_process.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace hypertune::inline v0 {

struct GaussianProcess::Knowledge {
  struct Trial {
    const Point* point;
    double mean;
    bool complete, met;  // reached the model's highest level; met the constraints
  };
  detail::gp::Chain objective;
  std::vector<Trial> trials;
};

struct GaussianProcess::Place {
  const std::vector<double>* features;
  double radius;
};

bool GaussianProcess::stagnant(double counts) const {
  return state_ && state_->goal.objectives <= 1 &&
         detail::gp::stagnant(state_->history, state_->epoch, state_->encoding, counts);
}

bool GaussianProcess::converged() const {
  return stagnant() && state_->center &&
         detail::gp::converged(state_->history, state_->epoch, state_->encoding, *state_->center);
}

auto GaussianProcess::best() const -> const Record* {
  return state_ && state_->center ? &state_->history.ended[*state_->center] : nullptr;
}

bool GaussianProcess::tried(const Point& point) const { return state_ && state_->tried.contains(point); }

std::optional<std::vector<double>> GaussianProcess::polished_features() const {
  if (!state_ || has_partial_trials() || !converged()) return std::nullopt;
  return detail::gp::polish(state_->history, state_->epoch, state_->encoding, *state_->center);
}

detail::gp::Source GaussianProcess::source() const {
  return {state_->history, state_->encoding, state_->epoch, static_cast<std::size_t>(max_observations),
          std::max<std::size_t>(1, state_->goal.objectives)};
}

bool GaussianProcess::has_partial_trials() const {
  const auto& h = state_->history;
  return h.cut > 0 || h.reporting > static_cast<std::size_t>(std::max(1, state_->goal.parallelism));
}

void GaussianProcess::prepare(const SearchSpace& space, const SearchContext& goal) {
  state_ = detail::Indirect(detail::gp::GaussianProcessState());
  state_->space = space;
  state_->goal = goal;
  state_->encoding = detail::gp::Encoding(space);
  const std::size_t dimensions = std::min(state_->encoding.dimensions().size(), detail::SobolSequence::max_dimensions);
  state_->sequence = detail::SobolSequence(dimensions, true, goal.seed);
  state_->tried = detail::Tried(space);
  state_->ties = detail::Ties(space);
}

void GaussianProcess::observe(const Observation& o) {
  auto& s = *state_;
  const std::size_t before = s.history.ended.size();
  if (o.kind == Observation::Kind::started) s.tried.add(o.point);
  s.ties.observe(o);
  s.history.observe(o, s.encoding, std::max<std::size_t>(1, s.goal.objectives));
  if (s.history.ended.size() > before) adapt(s.history.ended.back());
}

Suggestion GaussianProcess::suggest(const Ask& ask) {
  auto& s = *state_;
  if (s.encoding.dimensions().empty()) return s.tried.replaced_if_tried(s.space->sample(ask.rng), ask.rng);
  return s.tried.replaced_if_tried(proposed(ask.rng), ask.rng);
}

bool GaussianProcess::quick() const { return state_ && (has_partial_trials() ? starts_by_levels() : starts()); }

Suggestion GaussianProcess::proposed(Rng& rng) {
  if (quick()) return initial(rng);
  if (state_->history.started % 2 == 1)
    if (auto point = polished_minimum(rng)) return std::move(*point);
  return model_based(rng);
}

std::size_t GaussianProcess::startup_count() const {
  if (startup_trials > 0) return static_cast<std::size_t>(startup_trials);
  const std::size_t own = std::clamp<std::size_t>(state_->encoding.dimensions().size() + 2, 6, 16);
  if (state_->goal.samples <= 0) return own;
  return std::clamp<std::size_t>(static_cast<std::size_t>(state_->goal.samples) / 4, 2, own);
}

bool GaussianProcess::starts() const {
  const auto& h = state_->history;
  const std::size_t wanted = startup_count(), usable = h.ended.size() - state_->epoch;
  if (usable < wanted && (h.started - state_->epoch < wanted || usable < std::max<std::size_t>(2, wanted / 2)))
    return true;
  return h.useful == 0;
}

bool GaussianProcess::starts_by_levels() const {
  const auto& h = state_->history;
  if (state_->goal.samples > 0 && 4 * h.started >= static_cast<std::size_t>(state_->goal.samples)) return false;
  int longest = 1;
  for (const auto& subject : h.subjects)
    if (subject.reached != detail::gp::Arrival::whole) longest = std::max(longest, subject.reached);
  double runs = 0;
  for (const auto& subject : h.subjects)
    runs += std::min(1.0, static_cast<double>(subject.reached) / static_cast<double>(longest));
  return runs < static_cast<double>(startup_count());
}

Suggestion GaussianProcess::initial(Rng& rng) const {
  const auto& s = *state_;
  const auto& dimensions = s.encoding.dimensions();
  const std::uint64_t index = s.history.started;
  if (s.space->has_prior() && index % 3 != 2) return s.space->sample_prior(rng);
  std::vector<double> unit(s.space->size(), 0.5);
  for (int tries = 0; tries < 100; ++tries) {
    for (std::size_t k = 0; k < dimensions.size(); ++k) {
      const bool in_sequence = tries == 0 && k < detail::SobolSequence::max_dimensions;
      unit[dimensions[k].index] = in_sequence ? s.sequence.at(index, k) : uniform01(rng);
    }
    Point point = s.space->from_unit(unit, rng);
    if (s.space->feasible(point)) return point;
  }
  return s.space->sample(rng);
}

std::optional<Point> GaussianProcess::polished_minimum(Rng& rng) const {
  const auto& s = *state_;
  const auto features = polished_features();
  if (!features) return std::nullopt;
  detail::gp::Candidate candidate = s.encoding.at(s.history.ended[*s.center].point);
  const auto& dimensions = s.encoding.dimensions();
  for (std::size_t k = 0; k < dimensions.size(); ++k)
    if (dimensions[k].kind == detail::gp::Encoding::Kind::continuous)
      candidate.unit[dimensions[k].index] = (*features)[k];
  if (!s.encoding.complete(candidate, rng) || tried(candidate.point)) return std::nullopt;
  return candidate.point;
}

void GaussianProcess::adapt(const Record& record) {
  auto& s = *state_;
  if (record.cut) return;  // a stopped trial is no evidence for or against the region
  const double loss = record.standing();
  const bool better = loss < s.best - 1e-4 * std::fabs(s.best) || (loss < s.best && !std::isfinite(s.best));
  const bool inside = within_region(record.features);
  if (loss < s.best || !s.center) {
    s.best = std::min(s.best, loss);
    s.center = s.history.ended.size() - 1;
  }
  if (s.history.ended.size() - s.epoch <= static_cast<std::size_t>(max_observations) || s.goal.objectives > 1 ||
      has_partial_trials())
    return;
  if (!better && !inside) return;  // a trial outside of the region is no evidence against it
  s.region.successes = better ? s.region.successes + 1 : 0;
  s.region.failures = better ? 0 : s.region.failures + 1;
  const int patience = std::max({5, static_cast<int>(s.encoding.dimensions().size()), s.goal.parallelism});
  if (s.region.successes >= 3) {
    s.region = {std::min(1.6, 2 * s.region.length), 0, 0};
  } else if (s.region.failures >= patience) {
    s.region = {s.region.length / 2, 0, 0};
  }
  if (s.region.length >= 1.0 / 128) return;
  s.region = {};
  s.epoch = s.history.ended.size();
  s.best = worst_loss;
  s.center.reset();
  s.learner.clear();
}

bool GaussianProcess::within_region(const std::vector<double>& features) const {
  if (!state_->center) return true;
  const std::vector<double>& center = state_->history.ended[*state_->center].features;
  std::vector<double> away;
  for (std::size_t k = 0; k < center.size(); ++k)
    if (state_->encoding.categorical()[k] == 0) away.push_back(std::fabs(features[k] - center[k]));
  if (away.empty()) return true;
  const auto middle = away.begin() + static_cast<std::ptrdiff_t>(away.size() / 2);
  std::nth_element(away.begin(), middle, away.end());
  return *middle <= 0.75 * state_->region.length;
}

auto GaussianProcess::of_ends(const detail::gp::Data& all, std::size_t count) -> std::optional<Knowledge> {
  auto& s = *state_;
  const std::size_t features = all.inputs.features();
  std::optional<Model> model;
  if (s.goal.objectives > 1) {  // a new scalarisation each time, so that no earlier fit can be continued
    auto bent = transform(all.losses, detail::gp::Bend::linear);
    const auto start = detail::gp::Learner::starts(features, count);
    auto fitted = detail::gp::fit_hyper(all.inputs, bent.values, {start.front()}, 20);
    model = Model::of(all.inputs, std::move(bent.values), std::move(fitted.hyper));
  } else {
    const auto& learnt = s.learner.at(source(), 0, count);
    Hyper hyper =
        learnt.hyper.log.size() == features + 2 ? learnt.hyper : detail::gp::Learner::starts(features, count).front();
    model = Model::of(all.inputs, transform(all.losses, learnt.bend).values, std::move(hyper));
  }
  if (!model) return std::nullopt;
  Knowledge result;
  const auto means = model->fitted();
  for (std::size_t i = 0; i < all.of.size(); ++i) {
    const Record& r = s.history.ended[all.of[i]];
    result.trials.push_back({&r.point, means[i], true, detail::gp::met(r.constraints)});
  }
  result.objective = detail::gp::Chain(std::move(*model));
  return result;
}

auto GaussianProcess::of_levels(Rng& rng) -> std::optional<Knowledge> {
  auto& s = *state_;
  const detail::gp::Levels levels(s.history, s.encoding, s.history.arrivals.size(),
                                  static_cast<std::size_t>(max_observations));
  std::vector<detail::gp::Stage> stages =
      s.goal.objectives > 1 ? detail::gp::LevelLearner::fit(levels, {}, s.goal.objectives, &rng)
                            : s.level_learner.at(s.history, s.encoding, static_cast<std::size_t>(max_observations));
  Knowledge result;
  std::map<std::size_t, bool> subjects;  // whether complete
  for (std::size_t l = 0; l < stages.size(); ++l) {
    const bool top = l + 1 == stages.size();
    const int next = top ? detail::gp::Arrival::whole : stages[l + 1].steps;
    const auto level = levels.level(stages[l].steps, next, s.goal.objectives, &rng);
    if (level.of.empty() || !add_level(result.objective, level, stages[l], [](const auto&, const auto&) {})) break;
    for (const std::size_t subject : level.of) subjects[subject] = top;
  }
  uniform01(rng);  // advance the generator past the weights of the objectives
  if (result.objective.levels() == 0) return std::nullopt;
  detail::Matrix points(subjects.size(), s.encoding.features());
  std::size_t row = 0;
  for (const auto& [subject, complete] : subjects) {
    const auto& known = s.history.subjects[subject];
    std::copy(known.features.begin(), known.features.end(), points.row(row++));
    result.trials.push_back({&known.point, 0, complete, detail::gp::met(known.constraints)});
  }
  std::vector<double> means, variances;
  result.objective.posterior(points, row, means, variances);
  for (std::size_t i = 0; i < row; ++i) result.trials[i].mean = means[i];
  // Pending trials: all without a report, and of the others the latest, as the rest may wait forever.
  int added = 0;
  int running = s.goal.parallelism;
  for (auto p = s.history.pending.rbegin(); p != s.history.pending.rend() && added < 64; ++p) {
    const int reached = levels.reached(p->second.subject);
    if (reached > 0 && --running < 0) continue;
    ++added;
    std::size_t level = 0;
    while (level < stages.size() && stages[level].steps <= reached) ++level;
    result.objective.add_pending(p->second.features, level);
  }
  return result;
}

Suggestion GaussianProcess::model_based(Rng& rng) {
  auto& s = *state_;
  const std::size_t count = s.history.ended.size() - s.epoch;
  const bool by_levels = has_partial_trials();
  detail::gp::Data all = source().data(count, s.goal.objectives > 1 && !by_levels ? &rng : nullptr);
  auto knowledge = by_levels ? of_levels(rng) : of_ends(all, count);
  if (!knowledge) return initial(rng);

  std::vector<Model> constraints;
  constraints.reserve(s.goal.constraints);
  for (std::size_t c = 0; c < s.goal.constraints; ++c) {
    auto [inputs, values] = source().constraint(all, c);
    if (values.empty()) continue;
    if (auto model = Model::of(std::move(inputs), std::move(values), s.learner.at(source(), c + 1, count).hyper))
      constraints.push_back(std::move(*model));
  }

  detail::gp::Acquisition acquisition{.encoding = &s.encoding};
  auto& trials = knowledge->trials;
  const bool any_met = std::any_of(trials.begin(), trials.end(), [](const auto& t) { return t.met; });
  if (any_met) std::erase_if(trials, [](const auto& t) { return !t.met; });
  hypertune::detail::stable_sort(trials.begin(), trials.end(),
                                 [](const auto& a, const auto& b) { return a.mean < b.mean; });
  if (any_met) {
    auto best = std::find_if(trials.begin(), trials.end(), [](const auto& t) { return t.complete; });
    acquisition.best = best != trials.end() ? best->mean : trials.front().mean;
    acquisition.objective = &knowledge->objective;
  }
  for (const Model& m : constraints) acquisition.constraints.push_back(&m);
  if (s.space->has_prior()) {
    const double confidence =
        prior_confidence > 0 ? prior_confidence : std::max(10.0, static_cast<double>(s.goal.samples) / 10);
    acquisition.prior_weight = confidence / static_cast<double>(std::max<std::size_t>(1, s.history.ended.size()));
  }

  std::vector<detail::gp::Candidate> known;
  if (s.center) known.push_back(s.encoding.at(s.history.ended[*s.center].point));
  for (const auto& trial : trials) {
    if (known.size() >= 7) break;
    known.push_back(s.encoding.at(*trial.point));
  }
  const Hyper& hyper = knowledge->objective[knowledge->objective.levels() - 1].hyper();
  const detail::gp::Box box = this->box(by_levels ? 0 : count, hyper);
  // Pending trials, the latest first, up to a limit: trials that never return must not slow down every suggestion.
  int added = 0;
  for (auto p = s.history.pending.rbegin(); p != s.history.pending.rend() && added < 64; ++p, ++added) {
    for (Model& m : constraints) add_pending(m, p->second.features);
    if (!by_levels) knowledge->objective.add_pending(p->second.features);
  }
  detail::gp::Maximiser maximiser(s.encoding, s.sequence, acquisition, box, rng);
  auto found = maximiser.run(known, {});
  const auto apart = [&, taken = pending_places()](const detail::gp::Candidate& c) {
    return std::none_of(taken.begin(), taken.end(), [&](const Place& place) {
      return detail::gp::distance(s.encoding, c.features, *place.features) < place.radius;
    });
  };
  if (found.empty()) return initial(rng);
  const auto known_there = [&](const detail::gp::Candidate& c) { return tried(c.point) || s.ties.contains(c.point); };
  for (const detail::gp::Candidate& c : found)
    if (!known_there(c) && apart(c)) return c.point;
  for (const detail::gp::Candidate& c : found)
    if (!known_there(c)) return c.point;
  // All of the best candidates were tried (a corner, for example), or differ only where the loss does not: take the
  // best of the remaining ones.
  for (const detail::gp::Candidate& c : maximiser.spare())
    if (!known_there(c)) return c.point;
  for (const auto* list : {&std::as_const(found), &maximiser.spare()})
    for (const detail::gp::Candidate& c : *list)
      if (!tried(c.point)) return c.point;
  const auto left = s.tried.untried();
  if (!left) return initial(rng);
  if (left->empty()) return Suggestion::exhausted();
  constexpr std::size_t most = 500;
  std::vector<detail::gp::Candidate> others;
  for (std::size_t i = 0; i < std::min(most, left->size()); ++i)
    others.push_back(s.encoding.at((*left)[i * left->size() / std::min(most, left->size())]));
  acquisition.evaluate(others);
  const auto best = std::max_element(others.begin(), others.end(),
                                     [](const detail::gp::Candidate& a, const detail::gp::Candidate& b) {
                                       return a.value < b.value || (a.value != a.value && b.value == b.value);
                                     });
  return best->point;
}

auto GaussianProcess::pending_places() const -> std::vector<Place> {
  const auto& s = *state_;
  std::vector<Place> places;
  for (auto p = s.history.pending.rbegin(); p != s.history.pending.rend() && places.size() < 64; ++p) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t i = s.epoch; i < s.history.ended.size(); ++i)
      nearest = std::min(nearest, detail::gp::distance(s.encoding, p->second.features, s.history.ended[i].features));
    if (std::isfinite(nearest)) places.push_back({&p->second.features, nearest / 10});
  }
  return places;
}

void GaussianProcess::add_pending(Model& model, const std::vector<double>& features) {
  detail::gp::Posterior p;
  model.posterior(features, p, false);
  model.append(features, p.mean);
}

detail::gp::Box GaussianProcess::box(std::size_t count, const Hyper& hyper) const {
  const auto& dimensions = state_->encoding.dimensions();
  detail::gp::Box box{std::vector<double>(dimensions.size(), 0.0), std::vector<double>(dimensions.size(), 1.0)};
  if (count <= static_cast<std::size_t>(max_observations) || state_->goal.objectives > 1 || !state_->center) return box;
  const detail::gp::Candidate center = state_->encoding.at(state_->history.ended[*state_->center].point);
  double mean = 0;
  for (std::size_t k = 0; k < dimensions.size(); ++k)
    mean += hyper.log_length(k) / static_cast<double>(dimensions.size());
  for (std::size_t k = 0; k < dimensions.size(); ++k) {
    const double half = state_->region.length / 2 * std::clamp(std::exp(hyper.log_length(k) - mean), 0.1, 10.0);
    const double at = center.unit[dimensions[k].index];
    box.lower[k] = std::clamp(at - half, 0.0, 1.0);
    box.upper[k] = std::clamp(at + half, 0.0, 1.0);
  }
  return box;
}

}  // namespace hypertune::inline v0
