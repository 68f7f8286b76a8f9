// Fits hyperparameters to data, and decides whether the data support additional ones.
#pragma once

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/search/detail/gp/hyper.hpp>
#include <hypertune/search/detail/gp/inputs.hpp>
#include <hypertune/search/detail/gp/model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The most probable hyperparameters, found from the best of `starts`, and -log of their probability. They have the
/// same parts as the start (warp, direction, trend).
struct Fit {
  Hyper hyper;
  double loss = std::numeric_limits<double>::infinity();
};
inline Fit fit_hyper(const Inputs& inputs, const std::vector<double>& outputs, const std::vector<Hyper>& starts,
                     int evaluations) {
  const HyperPrior prior(inputs.features());
  std::vector<double> lower, upper;
  Fit best;
  for (const Hyper& start : starts) {
    prior.bounds(start, lower, upper);
    std::vector<double> x = start.flat();
    const auto loss = [&](const std::vector<double>& all, std::vector<double>& gradient) {
      const Hyper at = start.from_flat(all);
      const double value = Model::loss(inputs, outputs, at, &gradient);
      return std::isfinite(value) ? value + prior.add(at, &gradient) : value;
    };
    const double value = minimise(loss, x, lower, upper,
                                  {.evaluations = evaluations, .tolerance = 1e-3, .progress = 1e-5, .first_step = 1});
    if (best.hyper.log.empty() || value < best.loss) best = {start.from_flat(x), value};
  }
  return best;
}

/// What additional hyperparameters have to gain, in nats. For a direction and a trend: half the logarithm of the number
/// of observations for each of their numbers, because that much is gained by chance (Schwarz, "Estimating the Dimension
/// of a Model", Annals of Statistics 1978). Three more for a trend: it has only one number and is tried often. For
/// warped inputs half a nat per feature: they have two numbers, but a narrow prior. With less, periodic functions,
/// which vary equally fast everywhere, were warped, and the search got worse.
inline double complexity_penalty(const Hyper& hyper, const Inputs& inputs) {
  const double each = std::log(static_cast<double>(inputs.size())) / 2;
  const auto numeric = std::count(inputs.categorical.begin(), inputs.categorical.end(), 0);
  return (hyper.direction.empty() ? 0 : each * static_cast<double>(numeric)) + (hyper.log_trend ? each + 3 : 0) +
         (hyper.warp.empty() ? 0 : 0.5 * static_cast<double>(inputs.features()));
}

/// A model with additional hyperparameters, and its gain in nats minus their penalty. 0 or less: not worth it.
struct ExtendedFit {
  Hyper hyper;
  double gain = 0;

  ExtendedFit() = default;
  ExtendedFit(Fit with, const Fit& without, const Inputs& inputs)
      : hyper(std::move(with.hyper)),
        gain(without.loss + complexity_penalty(without.hyper, inputs) - with.loss - complexity_penalty(hyper, inputs)) {
  }
};

/// With a direction. The first guess is the direction in which a model without one is steepest, the next that of the
/// model fitted from it: the first fit may end with a wrong sign in one component and a short lengthscale that
/// compensates for it.
inline ExtendedFit with_direction(const Inputs& inputs, const std::vector<double>& values, const Hyper& hyper) {
  const std::size_t features = inputs.features(), n = inputs.size();
  if (std::count(inputs.categorical.begin(), inputs.categorical.end(), 0) < 2 || n < 2 * features) return {};
  const int evaluations = n < 50 ? 30 : n < 192 ? 20 : 10;  // each costs n^3
  const Fit plain = fit_hyper(inputs, values, {hyper}, evaluations);
  Fit directed;
  std::optional<Model> model = Model::of(inputs, values, plain.hyper);
  for (int round = 0; model && round < 3; ++round) {
    Hyper start = plain.hyper;
    start.direction = model->steepest();
    double square = 0;  // of the rate of change along the direction so far
    for (std::size_t k = 0; k < features; ++k) {
      square += start.direction[k] * start.direction[k] * start.weight(k);
      if (inputs.categorical[k] == 0) start.log[k] += 0.7;  // leaves a part to the direction
    }
    if (!(square > 0)) break;  // the model is constant
    for (double& v : start.direction) v *= std::sqrt(square);
    Fit found = fit_hyper(inputs, values, {start}, evaluations + evaluations / 2);
    if (!(found.loss < directed.loss - 1)) break;
    directed = std::move(found);
    model = Model::of(inputs, values, directed.hyper);
  }
  return {std::move(directed), plain, inputs};
}

/// With a quadratic trend.
inline ExtendedFit with_trend(const Inputs& inputs, const std::vector<double>& values, const Hyper& hyper) {
  const std::size_t features = inputs.features(), n = inputs.size();
  const bool numeric = std::count(inputs.categorical.begin(), inputs.categorical.end(), 0) > 0;
  if (!numeric || n < features + 3) return {};
  const int evaluations = n < 50 ? 20 : n < 192 ? 15 : 10;
  const Fit plain = fit_hyper(inputs, values, {hyper}, evaluations);
  Hyper start = plain.hyper;
  start.log_trend = 0;
  start.log[features] = std::max(std::log(0.1), start.log[features] - 1);
  return {fit_hyper(inputs, values, {start}, evaluations + evaluations / 2), plain, inputs};
}

/// With warped inputs.
inline ExtendedFit with_warp(const Inputs& inputs, const std::vector<double>& values, const Hyper& hyper) {
  const bool many = inputs.size() >= 128;
  const Fit plain = fit_hyper(inputs, values, {hyper}, many ? 1 : 4);
  Hyper start = hyper;
  start.warp.assign(2 * inputs.features(), 0.0);
  return {fit_hyper(inputs, values, {start}, many ? 8 : 20), plain, inputs};
}

}  // namespace hypertune::inline v0::detail::gp
