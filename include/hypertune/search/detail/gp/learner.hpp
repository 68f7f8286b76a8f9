// Learns the hyperparameters of a searcher's model, at fixed numbers of trials.
#pragma once

#include <hypertune/search/detail/gp/data.hpp>
#include <hypertune/search/detail/gp/fit.hpp>
#include <hypertune/search/detail/gp/hyper.hpp>
#include <hypertune/search/detail/gp/model.hpp>
#include <hypertune/search/detail/gp/transform.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The hyperparameters of one output (the objective or a constraint) learnt at one number of trials.
struct Learnt {
  std::size_t count = 0;
  Bend bend = Bend::linear;
  Hyper hyper;
};

/// How a fit is made at some number of items. none: not at all; onward: from the previous fit; afresh: from scratch,
/// though earlier results may be kept; alone: from scratch, independent of earlier results.
enum class Refit : std::uint8_t { none, onward, afresh, alone };

/// Calls `fit(count, refit)` for each number of items at which a fit is due, from `known` items up to `count`, which is
/// not less. Returns the last such number up to `count`. The result does not depend on `known`: a searcher that gets
/// all observations at once begins at a number whose fit is made `alone`, and arrives at the same result.
template <class RefitAt, class Fit>
std::size_t follow_fits(std::size_t known, std::size_t count, const RefitAt& refit_at, const Fit& fit) {
  while (count > 1 && refit_at(count) == Refit::none) --count;
  if (known == count) return count;
  std::size_t begin = count;
  while (begin > 1 && refit_at(begin) != Refit::alone && begin != known) --begin;
  for (std::size_t c = begin == known ? begin + 1 : begin; c <= count; ++c)
    if (const Refit refit = refit_at(c); refit != Refit::none) fit(c, refit);
  return count;
}

/// The hyperparameters of each output. They do not depend on what was computed before: fits are made only at fixed
/// numbers of trials, each from the previous one, and now and then from scratch, so that a searcher that gets all
/// observations at once arrives at the same result.
class Learner {
 public:
  void clear() { learnt_.clear(); }

  /// Output 0 is the objective, 1 the first constraint.
  const Learnt& at(const Source& source, std::size_t output, std::size_t count) {
    if (learnt_.size() <= output) learnt_.resize(output + 1);
    Learnt& known = learnt_[output];
    const auto refit = [&](std::size_t c) {
      return output > 0 && refit_at(c) == Refit::afresh ? Refit::alone : refit_at(c);
    };
    follow_fits(known.count, count, refit, [&](std::size_t c, Refit kind) {
      known = output > 0 ? of_constraint(source, output - 1, c, kind, known) : of_objective(source, c, kind, known);
    });
    return known;
  }

  static std::vector<Hyper> starts(std::size_t features, std::size_t count) {
    const HyperPrior prior(features);
    std::vector<Hyper> result = {prior.start(features, 0.3, 1e-4)};
    if (count < 50) result.push_back(prior.start(features, 1.0, 1e-2));  // few data may have two explanations
    return result;
  }

 private:
  // At every number of trials at first, then at fewer and fewer.
  static Refit refit_at(std::size_t count) {
    if (count <= 12 || (count > 128 && count % 128 == 0)) return Refit::alone;
    if (count == 16 || count == 24 || count == 40 || count == 64 || count == 128) return Refit::afresh;
    const bool fitted =
        count < 24 || (count < 64 && count % 2 == 0) || (count < 192 && count % 4 == 0) || count % 16 == 0;
    return fitted ? Refit::onward : Refit::none;
  }
  static bool goes_on(const Hyper& before, std::size_t features) { return before.log.size() == features + 2; }

  static Learnt of_constraint(const Source& source, std::size_t constraint, std::size_t count, Refit refit,
                              const Learnt& before) {
    const auto [inputs, values] = source.constraint(source.data(count, nullptr), constraint);
    const std::size_t features = source.encoding.features();
    Learnt result{.count = count, .bend = Bend::linear, .hyper = starts(features, count).front()};
    if (values.empty()) return result;
    const bool onward = refit == Refit::onward && goes_on(before.hyper, features);
    result.hyper = onward ? fit_hyper(inputs, values, {before.hyper}, few(count)).hyper
                          : fit_hyper(inputs, values, starts(features, count), 30).hyper;
    return result;
  }

  static Learnt of_objective(const Source& source, std::size_t count, Refit refit, const Learnt& before) {
    const Data all = source.data(count, nullptr);
    const std::size_t features = all.inputs.features();
    const bool known = goes_on(before.hyper, features);
    Learnt result{.count = count, .bend = before.bend, .hyper = {}};
    if (refit == Refit::onward && known) {
      const auto values = transform(all.losses, result.bend).values;
      result.hyper = fit_hyper(all.inputs, values, {before.hyper}, few(count)).hyper;
      if (count % (count < 64 ? 4 : count <= 192 ? 16 : 64) != 0) return result;
      if (result.hyper.direction.empty()) take(with_direction(all.inputs, values, result.hyper), result.hyper);
      if (!result.hyper.log_trend) take(with_trend(all.inputs, values, result.hyper), result.hyper);
      return result;
    }
    // Choose the bend with the greatest evidence. With many data a short fit is enough to tell the bends apart.
    double best = std::numeric_limits<double>::infinity();
    Hyper straight;
    for (const Bend bend : all_bends) {
      const auto bent = transform(all.losses, bend);
      const auto fitted = fit_hyper(all.inputs, bent.values, starts(features, count), count < 50 ? 30 : 8);
      if (bend == Bend::linear) straight = fitted.hyper;
      const double loss = fitted.loss + complexity_penalty(bend) - bent.log_jacobian;
      if (!result.hyper.log.empty() && !(loss < best)) continue;
      best = loss;
      result.bend = bend;
      result.hyper = fitted.hyper;
    }
    const auto values = transform(all.losses, result.bend).values;
    if (count >= 50) result.hyper = fit_hyper(all.inputs, values, {result.hyper}, 12).hyper;
    take(with_direction(all.inputs, values, result.hyper), result.hyper);
    if (take(with_trend(all.inputs, values, result.hyper), result.hyper))  // fit longer before trying a warp
      result.hyper = fit_hyper(all.inputs, values, {result.hyper}, 20).hyper;
    if (result.bend != Bend::linear) try_untransformed(all, std::move(straight), result);
    take(with_warp(all.inputs, transform(all.losses, result.bend).values, result.hyper), result.hyper);
    if (refit == Refit::afresh && known && !before.hyper.direction.empty()) keep_direction(all, before, result);
    return result;
  }

  static bool take(ExtendedFit extended, Hyper& hyper) {
    if (extended.gain > 0) hyper = std::move(extended.hyper);
    return extended.gain > 0;
  }

  // The criterion by which models of differently bent losses are compared: less is better.
  static double evidence(const Data& all, Bend bend, const Hyper& hyper) {
    const auto bent = transform(all.losses, bend);
    return Model::loss(all.inputs, bent.values, hyper, nullptr) + HyperPrior(hyper.features()).add(hyper, nullptr) +
           complexity_penalty(hyper, all.inputs) + complexity_penalty(bend) - bent.log_jacobian;
  }

  // A fit from scratch does not always find a known direction again, so compare it with the old one.
  static void keep_direction(const Data& all, const Learnt& before, Learnt& result) {
    double best = evidence(all, result.bend, result.hyper);
    std::vector<Bend> bends = {before.bend};
    if (result.bend != before.bend) bends.push_back(result.bend);
    for (const Bend bend : bends) {
      const auto values = transform(all.losses, bend).values;
      Hyper kept = fit_hyper(all.inputs, values, {before.hyper}, all.losses.size() < 50 ? 30 : 20).hyper;
      const double with = evidence(all, bend, kept);
      if (!(with < best)) continue;
      best = with;
      result.bend = bend;
      result.hyper = std::move(kept);
    }
  }

  // A quadratic is one only in losses that are not bent. Without a trend, a bend may look more likely, so try both.
  static void try_untransformed(const Data& all, Hyper straight, Learnt& result) {
    const auto values = transform(all.losses, Bend::linear).values;
    if (!take(with_trend(all.inputs, values, straight), straight)) return;
    if (!(evidence(all, Bend::linear, straight) < evidence(all, result.bend, result.hyper))) return;
    result.bend = Bend::linear;
    result.hyper = std::move(straight);
  }

  static int few(std::size_t count) { return count < 200 ? 12 : 8; }

  std::vector<Learnt> learnt_;  // the latest, by output
};

}  // namespace hypertune::inline v0::detail::gp
