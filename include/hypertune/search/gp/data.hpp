// The observations that a Gaussian process is fitted to.
#pragma once

#include <hypertune/search/gp/encoding.hpp>
#include <hypertune/search/gp/history.hpp>
#include <hypertune/search/gp/model.hpp>
#include <hypertune/search/gp/transform.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace hypertune::detail::gp {

/// The losses of several objectives as one: the augmented Chebyshev norm under random weights, over their ranges
/// (Knowles, "ParEGO: A Hybrid Algorithm With On-Line Landscape Approximation for Expensive Multiobjective Optimization
/// Problems", IEEE Transactions on Evolutionary Computation 2006).
template <class = void>
std::vector<double> scalarised(const std::vector<std::vector<double>>& losses, std::size_t objectives, Rng& rng) {
  std::vector<double> weights(objectives), result(losses.size());
  double sum = 0;
  for (double& w : weights) sum += w = -std::log(std::max(1e-12, uniform01(rng)));  // uniform on the simplex
  std::vector<std::vector<double>> scaled(objectives);
  for (std::size_t k = 0; k < objectives; ++k) {
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
    for (std::size_t k = 0; k < objectives; ++k) {
      const double y = weights[k] / sum * scaled[k][i];
      largest = std::max(largest, y);
      total += y;
    }
    result[i] = largest + 0.05 * total;
  }
  return result;
}

template <class>
struct BasicData;
using Data = BasicData<void>;

template <class Lazy>
struct BasicData {
  Inputs inputs;
  std::vector<double> losses;   // one objective, or several made one
  std::vector<std::size_t> of;  // the ended trial
};

/// Where data come from: the trials that have ended since the search began (anew), at most `local` of them at once.
struct Source {
  const History& history;
  const Encoding& encoding;
  std::size_t epoch = 0, local = 250, objectives = 1;

  const Record& record(std::size_t i) const { return history.ended[epoch + i]; }

  /// Of the first `count` trials. Several objectives are made one by `rng`.
  Data data(std::size_t count, Rng* rng) const {
    Data result{Inputs(encoding.categorical()), {}, {}};
    std::vector<std::vector<double>> losses;
    for (const std::size_t i : choose(count)) {
      result.inputs.add(record(i).features);
      losses.push_back(record(i).losses);
      result.of.push_back(epoch + i);
    }
    if (objectives > 1 && rng != nullptr)
      result.losses = scalarised(losses, objectives, *rng);
    else
      for (const auto& l : losses) result.losses.push_back(l.front());
    return result;
  }

  /// What is known of a learnt constraint, of the trials in `all`. No values where nothing is.
  std::pair<Inputs, std::vector<double>> constraint(const Data& all, std::size_t constraint) const {
    std::pair<Inputs, std::vector<double>> result{Inputs(encoding.categorical()), {}};
    for (const std::size_t i : all.of) {
      const Record& r = history.ended[i];
      if (constraint >= r.constraints.size() || !(r.constraints[constraint] == r.constraints[constraint])) continue;
      result.first.add(r.features);
      result.second.push_back(r.constraints[constraint]);
    }
    result.second = transform_constraint(result.second);
    return result;
  }

 private:
  // All, or the best fifth and those nearest to the best.
  std::vector<std::size_t> choose(std::size_t count) const {
    std::vector<std::size_t> chosen(count);
    for (std::size_t i = 0; i < count; ++i) chosen[i] = i;
    if (count <= local) return chosen;
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::size_t a, std::size_t b) { return record(a).standing() < record(b).standing(); });
    const auto kept = chosen.begin() + static_cast<std::ptrdiff_t>(local / 5);
    const std::vector<double>& center = record(chosen.front()).features;
    std::vector<double> distance(count, 0.0);
    for (auto i = kept; i != chosen.end(); ++i) {
      const auto& x = record(*i).features;
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double d = x[k] - center[k];
        distance[*i] += encoding.categorical()[k] != 0 ? (d == 0 ? 0 : 0.25) : d * d;
      }
    }
    std::stable_sort(kept, chosen.end(), [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
    chosen.resize(local);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }
};

/// What was learnt of one output (the objective or a constraint) at one number of trials.
struct Learnt {
  std::size_t count = 0;
  Bend bend = Bend::linear;
  Hyper hyper;
};

/// Calls `fit(count, afresh)` for each number of items at which one is to be made, on the way from `known` items to
/// `count`; `afresh`: without what was learnt before. Returns the last such number up to `count`, whatever was known:
/// who is told everything at once arrives at the same.
template <class Fitted, class Afresh, class Fit>
std::size_t follow_fits(std::size_t known, std::size_t count, const Fitted& fitted_at, const Afresh& afresh_at,
                        const Fit& fit) {
  while (count > 1 && !fitted_at(count)) --count;
  if (known == count) return count;
  std::size_t begin = count;
  while (begin > 1 && !afresh_at(begin) && begin != known) --begin;
  bool afresh = begin != known;
  for (std::size_t c = afresh ? begin : begin + 1; c <= count; ++c)
    if (fitted_at(c)) {
      fit(c, afresh || afresh_at(c));
      afresh = false;
    }
  return count;
}

template <class>
class BasicLearner;
using Learner = BasicLearner<void>;

/// Hyperparameters of one output, whatever was computed before: fits are made at fixed numbers of trials only, each
/// from the one before, and now and then from scratch, so that a searcher that is told everything at once arrives at
/// the same ones.
template <class Lazy>
class BasicLearner {
 public:
  void clear() { learnt_.clear(); }

  /// Output 0 is the objective, 1 the first constraint.
  const Learnt& at(const Source& source, std::size_t output, std::size_t count) {
    if (learnt_.size() <= output) learnt_.resize(output + 1);
    Learnt& known = learnt_[output];
    follow_fits(known.count, count, &fitted_at, &afresh_at,
                [&](std::size_t c, bool afresh) { known = fit(source, output, c, afresh ? nullptr : &known); });
    return known;
  }

  static std::vector<Hyper> starts(std::size_t features, std::size_t count) {
    const HyperPrior prior(features);
    std::vector<Hyper> result = {prior.start(features, 0.3, 1e-4)};
    if (count < 50) result.push_back(prior.start(features, 1.0, 1e-2));  // few data may be explained in two ways
    return result;
  }

 private:
  // At all numbers of trials first, ever fewer later.
  static bool fitted_at(std::size_t count) {
    return count < 24 || (count < 64 && count % 2 == 0) || (count < 192 && count % 4 == 0) || count % 16 == 0;
  }
  static bool afresh_at(std::size_t count) {
    return count <= 12 || count == 16 || count == 24 || count == 40 || count == 64 || count % 128 == 0;
  }

  static Learnt fit(const Source& source, std::size_t output, std::size_t count, const Learnt* before) {
    const Data all = source.data(count, nullptr);
    Learnt result;
    result.count = count;
    const int few = count < 200 ? 12 : 8;
    if (output > 0) {
      const auto [inputs, values] = source.constraint(all, output - 1);
      const std::size_t features = source.encoding.features();
      const bool warm = before != nullptr && before->hyper.log.size() == features + 2;
      result.hyper = values.empty() ? starts(features, count).front()
                     : warm         ? fit_hyper(inputs, values, {before->hyper}, few).hyper
                                    : fit_hyper(inputs, values, starts(features, count), 30).hyper;
      return result;
    }
    const std::size_t features = all.inputs.features();
    if (before != nullptr && before->hyper.log.size() == features + 2) {
      result.bend = before->bend;
      result.hyper = fit_hyper(all.inputs, transform(all.losses, result.bend).values, {before->hyper}, few).hyper;
      return result;
    }
    // The bend of the greatest evidence. With many data a short look is enough to tell them apart.
    double best = std::numeric_limits<double>::infinity();
    for (const Bend bend : all_bends) {
      const auto bent = transform(all.losses, bend);
      const auto fitted = fit_hyper(all.inputs, bent.values, starts(features, count), count < 50 ? 30 : 8);
      const double loss = fitted.loss - bent.log_jacobian;
      if (!result.hyper.log.empty() && !(loss < best)) continue;
      best = loss;
      result.bend = bend;
      result.hyper = fitted.hyper;
    }
    if (count >= 50)
      result.hyper = fit_hyper(all.inputs, transform(all.losses, result.bend).values, {result.hyper}, 12).hyper;
    consider_warp(all.inputs, transform(all.losses, result.bend).values, result.hyper);
    return result;
  }

  // To warp inputs takes two more numbers per feature, and where a function changes as fast everywhere it leads away
  // from what is periodic, so it has to explain the losses better by half a nat per feature.
  static void consider_warp(const Inputs& inputs, const std::vector<double>& values, Hyper& hyper) {
    const bool many = inputs.size() >= 128;  // a short look, as above
    const Fit plain = fit_hyper(inputs, values, {hyper}, many ? 1 : 4);
    hyper.warp.assign(2 * inputs.features(), 0.0);
    Fit warped = fit_hyper(inputs, values, {hyper}, many ? 8 : 20);
    const double enough = 0.5 * static_cast<double>(inputs.features());
    if (warped.loss < plain.loss - enough)
      hyper = std::move(warped.hyper);
    else
      hyper.warp.clear();
  }

  std::vector<Learnt> learnt_;  // by output, the last
};

}  // namespace hypertune::detail::gp
