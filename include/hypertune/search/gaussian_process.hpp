// GaussianProcess: Bayesian optimisation, for trials that cost much more than a few milliseconds.
#pragma once

#include <hypertune/search/gp/acquisition.hpp>
#include <hypertune/search/gp/encoding.hpp>
#include <hypertune/search/gp/history.hpp>
#include <hypertune/search/gp/maximise.hpp>
#include <hypertune/search/gp/model.hpp>
#include <hypertune/search/gp/transform.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/sobol.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail::gp {

/// What was learnt of one output at one number of observations.
struct Learnt {
  std::size_t count = 0;
  Bend bend = Bend::linear;
  Hyper hyper;
};

/// Numbers of observations at which hyperparameters are fitted: at all of them first, ever fewer later.
inline bool fitted_at(std::size_t count) {
  return count < 24 || (count < 60 && count % 2 == 0) || (count < 200 && count % 5 == 0) || count % 20 == 0;
}
/// … and at these from scratch. Between two of them each fit starts from the one before.
inline bool fitted_afresh_at(std::size_t count) {
  return count <= 12 || count == 16 || count == 24 || count == 40 || count == 60 || count == 100 ||
         (count >= 200 && count % 200 == 0);
}

/// The observations that a model is made of.
struct Data {
  Inputs inputs;
  std::vector<double> losses;   // one objective, or several made one
  std::vector<std::size_t> of;  // the ended trial
  std::vector<bool> full;       // went all the way
};

struct Region {  // as in Eriksson et al., "TuRBO", NeurIPS 2019
  double length = 0.8;
  int successes = 0, failures = 0;
};

struct GaussianProcessState {
  std::optional<SearchSpace> space;
  SearchGoal goal;
  Encoding encoding;
  SobolSequence sequence;
  History history;
  Region region;
  std::size_t epoch = 0;  // the observation at which the search began anew
  double best = worst_loss;
  std::map<std::size_t, Learnt> learnt;  // a cache: by output (the objective, then the constraints), the last fit
};

}  // namespace detail::gp

/// Bayesian optimisation with a Gaussian process: the next configuration is the one of the greatest expected
/// improvement under a model of the losses. The searcher of choice for few (10 to 500), expensive trials. It reads:
/// mixed and conditional spaces, constraints between parameters, learnt constraints, the user's priors, trials stopped
/// early (the steps are an input of the model, which is asked for what a full run would give), pending trials (believed
/// to return what the model expects), several objectives (a random scalarisation for each suggestion: Knowles,
/// "ParEGO", 2006).
///
/// The model: Matern 5/2 with a lengthscale per dimension under a prior that scales with the dimension (Hvarfner et al.
/// 2024), learnt noise, losses bent by the power transform of the greatest evidence (after HEBO, Cowen-Rivers et al.
/// 2022); log expected improvement (Ament et al. 2023). With more than `local` observations it becomes a search in a
/// trust region (Eriksson et al., "TuRBO", 2019), modelled by the `local` most telling of them, so that a suggestion
/// costs the same after 10,000 trials as after 300: some 10 ms in 10 dimensions.
struct GaussianProcess {
  int startup = 0;  ///< trials spread evenly before the model is asked; 0: by the number of dimensions
  int local = 250;  ///< observations that the model sees at most
  double prior_confidence =
      0;  ///< trials after which data outweigh a user's prior; 0: 10, or a tenth of `samples` if more

  detail::gp::GaussianProcessState state_{};

  /// Throws an Error where an option makes no sense.
  void check() const {
    if (startup < 0) fail(Errc::usage, "gp: 'startup' is {}, but must be 0 (chosen by dimension) or more", startup);
    if (local < 20) fail(Errc::usage, "gp: 'local' is {}, but the model needs at least 20 observations", local);
    if (!(prior_confidence >= 0))
      fail(Errc::usage, "gp: 'prior_confidence' is {}, but must be 0 (chosen by samples) or more", prior_confidence);
  }

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    check();
    state_ = {};
    state_.space = space;
    state_.goal = goal;
    state_.encoding = detail::gp::Encoding(space);
    const std::size_t dimensions = std::min(state_.encoding.dimensions().size(), detail::SobolSequence::max_dimensions);
    state_.sequence = detail::SobolSequence(dimensions, true, goal.seed);
  }

  void observe(const Observation& o) {
    auto& s = state_;
    const std::size_t before = s.history.ended.size();
    s.history.observe(o, s.encoding, std::max<std::size_t>(1, s.goal.objectives));
    if (s.history.ended.size() > before) adapt(s.history.ended.back());
  }

  Suggestion suggest(const Ask& ask) {
    auto& s = state_;
    if (s.encoding.dimensions().empty()) return s.space->sample(ask.rng);
    const std::size_t wanted = startup_trials();
    const std::size_t usable = s.history.ended.size() - s.epoch;
    if (usable < wanted && (s.history.started - s.epoch < wanted || usable < std::max<std::size_t>(2, wanted / 2)))
      return initial(ask.rng);
    if (s.history.useful == 0) return initial(ask.rng);
    return model_based(ask.rng);
  }

  std::string name() const { return "gp"; }
  static constexpr bool multi_objective = true;

 private:
  using Record = detail::gp::Record;
  using Model = detail::gp::Model;
  using Hyper = detail::gp::Hyper;
  using Candidate = detail::gp::Candidate;
  using Bend = detail::gp::Bend;

  std::size_t startup_trials() const {
    if (startup > 0) return static_cast<std::size_t>(startup);
    const std::size_t own = std::clamp<std::size_t>(state_.encoding.dimensions().size() + 2, 6, 16);
    if (state_.goal.samples <= 0) return own;
    return std::clamp<std::size_t>(static_cast<std::size_t>(state_.goal.samples) / 4, 2, own);
  }

  // Evenly over the space, or over what the user believes.
  Suggestion initial(Rng& rng) const {
    const auto& s = state_;
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

  // The trust region grows with success and shrinks without; when it is tiny the search begins anew.
  void adapt(const Record& record) {
    auto& s = state_;
    const double loss = record.cut ? worst_loss : record.last.losses.front();
    const bool better = loss < s.best - 1e-4 * std::fabs(s.best) || (loss < s.best && !std::isfinite(s.best));
    s.best = std::min(s.best, loss);
    if (s.history.ended.size() - s.epoch <= static_cast<std::size_t>(local) || s.goal.objectives > 1) return;
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
    s.learnt.clear();
  }

  // The losses of several objectives as one: the augmented Chebyshev norm with random weights, over their ranges.
  std::vector<double> scalarised(const std::vector<std::vector<double>>& losses, Rng* rng) const {
    const std::size_t m = std::max<std::size_t>(1, state_.goal.objectives);
    std::vector<double> result(losses.size());
    if (m == 1 || rng == nullptr) {
      for (std::size_t i = 0; i < losses.size(); ++i) result[i] = losses[i].front();
      return result;
    }
    std::vector<double> weights(m);
    double sum = 0;
    for (double& w : weights) sum += w = -std::log(std::max(1e-12, uniform01(*rng)));  // uniform on the simplex
    std::vector<std::vector<double>> scaled(m);
    for (std::size_t k = 0; k < m; ++k) {
      std::vector<double> finite;
      for (const auto& l : losses)
        if (std::isfinite(l[k])) finite.push_back(std::clamp(l[k], -1e100, 1e100));
      if (finite.empty()) finite.push_back(0);
      std::sort(finite.begin(), finite.end());
      const double low = finite.front(), middle = finite[finite.size() / 2];
      const double unit = middle > low ? middle - low : finite.back() > low ? finite.back() - low : 1;
      for (const auto& l : losses) {
        const double z = std::isfinite(l[k]) ? (std::clamp(l[k], -1e100, 1e100) - low) / unit : l[k] < 0 ? 0 : 1e3;
        scaled[k].push_back(std::log1p(std::clamp(z, 0.0, 1e3)));
      }
    }
    for (std::size_t i = 0; i < losses.size(); ++i) {
      double largest = 0, total = 0;
      for (std::size_t k = 0; k < m; ++k) {
        const double y = weights[k] / sum * scaled[k][i];
        largest = std::max(largest, y);
        total += y;
      }
      result[i] = largest + 0.05 * total;
    }
    return result;
  }

  bool staged() const {  // some trials were stopped before their end: how far they came matters
    const auto& ended = state_.history.ended;
    return std::any_of(ended.begin() + static_cast<std::ptrdiff_t>(state_.epoch), ended.end(),
                       [](const Record& r) { return r.cut; });
  }

  // From the first `count` trials of this epoch.
  detail::gp::Data data(std::size_t count, bool with_steps, Rng* rng) const {
    const auto& s = state_;
    const auto cap = static_cast<std::size_t>(local);
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(s.epoch + i);
    int longest = 0;
    for (const std::size_t i : chosen) longest = std::max(longest, s.history.ended[i].last.steps);
    const auto loss_of = [&](std::size_t i) {
      const Record& r = s.history.ended[i];
      return r.cut ? worst_loss : r.last.losses.front();
    };
    if (count > cap) {  // the best fifth, and those nearest to the best
      std::stable_sort(chosen.begin(), chosen.end(),
                       [&](std::size_t a, std::size_t b) { return loss_of(a) < loss_of(b); });
      const auto kept = chosen.begin() + static_cast<std::ptrdiff_t>(cap / 5);
      const std::vector<double>& center = s.history.ended[chosen.front()].features;
      std::vector<double> distance(s.history.ended.size());
      for (auto i = kept; i != chosen.end(); ++i) {
        const auto& x = s.history.ended[*i].features;
        for (std::size_t k = 0; k < x.size(); ++k) {
          const double d = x[k] - center[k];
          distance[*i] += s.encoding.categorical()[k] != 0 ? (d == 0 ? 0 : 0.25) : d * d;
        }
      }
      std::stable_sort(kept, chosen.end(), [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
      chosen.resize(cap);
      std::sort(chosen.begin(), chosen.end());
    }
    auto kinds = s.encoding.categorical();
    if (with_steps) kinds.push_back(0);
    detail::gp::Data result{detail::gp::Inputs(std::move(kinds)), {}, {}, {}};
    std::vector<std::vector<double>> losses;
    const auto add = [&](std::size_t i, const detail::gp::Result& outcome, double reached) {
      std::vector<double> x = s.history.ended[i].features;
      if (with_steps) x.push_back(reached);
      result.inputs.add(x);
      losses.push_back(outcome.losses);
      result.of.push_back(i);
      result.full.push_back(reached >= 1);
    };
    for (const std::size_t i : chosen) {
      const Record& r = s.history.ended[i];
      add(i, r.last, r.cut ? detail::gp::progress(r.last.steps, longest) : 1);
    }
    if (with_steps) {  // what full runs looked like on the way, so that the model learns what the way means
      std::size_t room = cap > chosen.size() ? cap - chosen.size() : 0;
      room = std::min(room, chosen.size());
      for (const std::size_t i : chosen) {
        const Record& r = s.history.ended[i];
        if (r.cut || r.reports.size() < 2) continue;
        const auto& half = r.reports[(r.reports.size() - 1) / 2];
        if (room == 0) break;
        if (half.steps >= r.last.steps) continue;
        add(i, half, detail::gp::progress(half.steps, longest));
        --room;
      }
    }
    result.losses = scalarised(losses, rng);
    return result;
  }

  std::vector<Hyper> starts(std::size_t features, std::size_t count) const {
    const detail::gp::HyperPrior prior(features);
    std::vector<Hyper> result = {prior.start(features, 0.3, 1e-4)};
    if (count < 50) result.push_back(prior.start(features, 1.0, 1e-2));  // few data may be explained in two ways
    return result;
  }

  // One output at `count` observations, whatever was computed before: the chain of fits since the last afresh one.
  const detail::gp::Learnt& learn(std::size_t output, std::size_t count, bool with_steps) {
    using detail::gp::fitted_afresh_at;
    using detail::gp::fitted_at;
    while (count > 1 && !fitted_at(count)) --count;
    detail::gp::Learnt& known = state_.learnt[output];
    if (known.count == count) return known;
    std::size_t begin = count;
    while (begin > 1 && !fitted_afresh_at(begin) && begin != known.count) --begin;
    if (begin != known.count) {
      known = {};
      --begin;
    }
    for (std::size_t c = begin + 1; c <= count; ++c) {
      if (!fitted_at(c)) continue;
      known = fit(output, c, with_steps, fitted_afresh_at(c) ? nullptr : &known);
    }
    return known;
  }

  detail::gp::Learnt fit(std::size_t output, std::size_t count, bool with_steps,
                         const detail::gp::Learnt* before) const {
    const detail::gp::Data all = data(count, with_steps && output == 0, nullptr);
    const std::size_t features = all.inputs.features();
    const bool warm = before != nullptr && before->hyper.log.size() == features + 2;
    detail::gp::Learnt result;
    result.count = count;
    if (output > 0) {
      const auto [inputs, values] = constraint_data(all, output - 1);
      if (values.empty()) {
        result.hyper = starts(features, count).front();
        return result;
      }
      result.hyper = warm ? detail::gp::fit_hyper(inputs, values, {before->hyper}, 12).hyper
                          : detail::gp::fit_hyper(inputs, values, starts(features, count), 30).hyper;
      return result;
    }
    if (warm) {
      result.bend = before->bend;
      result.hyper =
          detail::gp::fit_hyper(all.inputs, transform(all.losses, result.bend).values, {before->hyper}, 12).hyper;
      return result;
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Bend bend : detail::gp::all_bends) {
      const auto bent = transform(all.losses, bend);
      const auto fitted = detail::gp::fit_hyper(all.inputs, bent.values, starts(features, count), count < 50 ? 30 : 16);
      const double loss = fitted.loss - bent.log_jacobian;
      if (!result.hyper.log.empty() && !(loss < best)) continue;
      best = loss;
      result.bend = bend;
      result.hyper = fitted.hyper;
    }
    return result;
  }

  std::pair<detail::gp::Inputs, std::vector<double>> constraint_data(const detail::gp::Data& all,
                                                                     std::size_t constraint) const {
    std::pair<detail::gp::Inputs, std::vector<double>> result{detail::gp::Inputs(state_.encoding.categorical()), {}};
    for (std::size_t i = 0; i < all.of.size(); ++i) {
      const Record& r = state_.history.ended[all.of[i]];
      if (constraint >= r.constraints.size() || !(r.constraints[constraint] == r.constraints[constraint])) continue;
      if (i > 0 && all.of[i] < all.of[i - 1]) break;  // from here on the ways of trials already counted
      result.first.add(r.features);
      result.second.push_back(r.constraints[constraint]);
    }
    result.second = detail::gp::transform_constraint(result.second);
    return result;
  }

  // The model would take a duplicate only for noise.
  static void believe(Model& model, const std::vector<double>& features) {
    detail::gp::Posterior p;
    model.posterior(features, p, false);
    model.append(features, p.mean);
  }

  Suggestion model_based(Rng& rng) {
    auto& s = state_;
    const std::size_t count = s.history.ended.size() - s.epoch;
    const bool with_steps = staged();
    const bool several = s.goal.objectives > 1;
    detail::gp::Data all = data(count, with_steps, several ? &rng : nullptr);
    const std::size_t features = all.inputs.features();

    std::optional<Model> objective;
    if (several) {  // a new objective each time, so nothing to go on from
      auto bent = transform(all.losses, Bend::linear);
      const auto start = starts(features, count);
      auto fitted = detail::gp::fit_hyper(all.inputs, bent.values, {start.front()}, 20);
      objective = Model::of(all.inputs, std::move(bent.values), std::move(fitted.hyper));
    } else {
      const auto& learnt = learn(0, count, with_steps);
      Hyper hyper = learnt.hyper.log.size() == features + 2 ? learnt.hyper : starts(features, count).front();
      objective = Model::of(all.inputs, transform(all.losses, learnt.bend).values, std::move(hyper));
    }
    if (!objective) return initial(rng);

    std::vector<Model> constraints;
    constraints.reserve(s.goal.constraints);
    std::vector<bool> met(all.of.size(), true);
    for (std::size_t c = 0; c < s.goal.constraints; ++c) {
      auto [inputs, values] = constraint_data(all, c);
      if (values.empty()) continue;
      if (auto model = Model::of(std::move(inputs), std::move(values), learn(c + 1, count, with_steps).hyper))
        constraints.push_back(std::move(*model));
      for (std::size_t i = 0; i < all.of.size(); ++i) {
        const auto& known = s.history.ended[all.of[i]].constraints;
        if (c < known.size() && !(known[c] <= 0)) met[i] = false;
      }
    }

    detail::gp::Acquisition acquisition{.encoding = &s.encoding};
    if (with_steps) acquisition.appended = {1.0};
    std::vector<double> means = objective->fitted();
    if (with_steps) {  // what they would have come to
      Matrix points(all.of.size(), features);
      for (std::size_t i = 0; i < points.rows(); ++i) {
        for (std::size_t k = 0; k + 1 < features; ++k) points(i, k) = all.inputs.columns[k][i];
        points(i, features - 1) = 1;
      }
      std::vector<double> variances;
      objective->posterior(points, points.rows(), means, variances);
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < means.size(); ++i)
      if (met[i]) order.push_back(i);
    if (!order.empty()) {
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return means[a] < means[b]; });
      acquisition.best = means[order.front()];
      acquisition.objective = &*objective;
    } else {
      for (std::size_t i = 0; i < means.size(); ++i) order.push_back(i);
    }
    for (const Model& m : constraints) acquisition.constraints.push_back(&m);
    if (s.space->has_prior()) {
      const double confidence =
          prior_confidence > 0 ? prior_confidence : std::max(10.0, static_cast<double>(s.goal.samples) / 10);
      acquisition.prior_weight = confidence / static_cast<double>(std::max<std::size_t>(1, s.history.ended.size()));
    }

    std::vector<Candidate> known;
    for (const std::size_t i : order) {
      if (known.size() == 6) break;
      known.push_back(s.encoding.at(s.history.ended[all.of[i]].point));
    }
    const detail::gp::Box box = this->box(count, known.front(), objective->hyper());
    // Pending trials, the latest first: those that never return must not make every suggestion slower.
    int believed = 0;
    for (auto p = s.history.pending.rbegin(); p != s.history.pending.rend() && believed < 64; ++p, ++believed) {
      std::vector<double> x = p->second.features;
      for (Model& m : constraints) believe(m, x);
      if (with_steps) x.push_back(1);
      believe(*objective, x);
    }
    detail::gp::Maximiser maximiser(s.encoding, s.sequence, acquisition, box, rng);
    auto found = maximiser.run(known, {});
    for (const Candidate& c : found)
      if (!tried(c.point)) return c.point;
    return found.empty() ? initial(rng) : Suggestion(found.front().point);
  }

  detail::gp::Box box(std::size_t count, const Candidate& center, const Hyper& hyper) const {
    const auto& dimensions = state_.encoding.dimensions();
    detail::gp::Box box{std::vector<double>(dimensions.size(), 0.0), std::vector<double>(dimensions.size(), 1.0)};
    if (count <= static_cast<std::size_t>(local) || state_.goal.objectives > 1) return box;
    double mean = 0;
    for (std::size_t k = 0; k < dimensions.size(); ++k) mean += hyper.log[k] / static_cast<double>(dimensions.size());
    for (std::size_t k = 0; k < dimensions.size(); ++k) {
      const double half = state_.region.length / 2 * std::clamp(std::exp(hyper.log[k] - mean), 0.1, 10.0);
      const double at = center.unit[dimensions[k].index];
      box.lower[k] = std::clamp(at - half, 0.0, 1.0);
      box.upper[k] = std::clamp(at + half, 0.0, 1.0);
    }
    return box;
  }

  bool tried(const Point& point) const {
    const auto same = [&](const Point& other) {
      return std::equal(point.begin(), point.end(), other.begin(), other.end(),
                        [](double a, double b) { return a == b || (!is_active(a) && !is_active(b)); });
    };
    const auto& h = state_.history;
    return std::any_of(h.ended.begin(), h.ended.end(), [&](const Record& r) { return same(r.point); }) ||
           std::any_of(h.pending.begin(), h.pending.end(), [&](const auto& p) { return same(p.second.point); });
  }

  using Matrix = detail::Matrix;
};

}  // namespace hypertune
