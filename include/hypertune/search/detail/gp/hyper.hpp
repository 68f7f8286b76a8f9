// The hyperparameters of a Gaussian process, and their prior.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The hyperparameters that are learnt: a lengthscale per feature, the variances of the signal and of the noise, as
/// logarithms, and additional ones if the data support them (see fit.hpp). The entries of `warp` and `direction` for
/// labels are not used.
struct Hyper {
  std::vector<double> log;            // lengthscales by feature, then signal, then noise
  std::vector<double> warp{};         // log a and log b of Warped, by feature; or empty
  std::vector<double> direction{};    // by feature, or empty: see Model
  std::optional<double> log_trend{};  // the variance of a quadratic trend

  /// All parts in one row; and back: an object with the same parts as this one.
  std::vector<double> flat() const {
    std::vector<double> all = log;
    all.insert(all.end(), warp.begin(), warp.end());
    all.insert(all.end(), direction.begin(), direction.end());
    if (log_trend) all.push_back(*log_trend);
    return all;
  }
  Hyper from_flat(const std::vector<double>& all) const {
    Hyper h = *this;
    auto from = all.begin();
    for (auto* part : {&h.log, &h.warp, &h.direction})
      for (double& value : *part) value = *from++;
    if (h.log_trend) h.log_trend = *from++;
    return h;
  }
  std::size_t features() const { return log.size() - 2; }
  /// The logarithm of the distance in one feature over which the function changes, including the direction's part.
  double log_length(std::size_t k) const {
    return direction.empty() ? log[k] : -std::log(weight(k) + direction[k] * direction[k]) / 2;
  }
  double weight(std::size_t k) const { return std::exp(-2 * log[k]); }  // 1 / lengthscale^2
  double signal() const { return std::exp(log[features()]); }
  double noise() const { return std::exp(log[features() + 1]); }
  double trend() const { return log_trend ? std::exp(*log_trend) : 0; }
  // Offsets of the parts in flat().
  std::size_t at_warp() const { return log.size(); }
  std::size_t at_direction() const { return at_warp() + warp.size(); }
  std::size_t at_trend() const { return at_direction() + direction.size(); }
};

/// The prior of the hyperparameters. Lengthscales grow with the root of the number of features, so that the expected
/// complexity of the function is the same in all dimensions. Hvarfner, Hellsten, Nardi, "Vanilla Bayesian Optimization
/// Performs Great in High Dimensions", ICML 2024. Location and width are less than theirs (exp(-1) and 1.2 for
/// exp(1.41) and 1.73): with theirs, a dimension with a small effect beside others soon counts as irrelevant and is
/// left at a bound. Outputs are expected to be standardised.
struct HyperPrior {
  explicit HyperPrior(std::size_t features)
      : length_mean(-1 + std::log(static_cast<double>(std::max<std::size_t>(1, features))) / 2),
        root(std::sqrt(static_cast<double>(std::max<std::size_t>(1, features)))) {}
  double length_mean, root;
  double length_sd = 1.2;
  double signal_mean = 0, signal_sd = 0.7;
  double noise_mean = -8, noise_sd = 3;
  double smallest_noise = 1e-8;
  double warp_sd = 0.25, max_warp = 1.6;
  double direction_sd = 3, max_direction = 30;  // in units of 1 / lengthscale: usually down to a third of a dimension
  double trend_mean = 0, trend_sd = 2;          // of its variance, relative to that of the outputs

  Hyper start(std::size_t features, double length, double noise) const {
    Hyper h{std::vector<double>(features + 2, std::log(length * root))};
    h.log[features] = 0;
    h.log[features + 1] = std::log(noise);
    return h;
  }
  void bounds(const Hyper& h, std::vector<double>& lower, std::vector<double>& upper) const {
    const std::size_t features = h.features();
    lower.assign(features, std::log(0.01));
    upper.assign(features, std::log(1000.0 * root));
    const auto add = [&](std::size_t count, double least, double most) {
      lower.insert(lower.end(), count, least);
      upper.insert(upper.end(), count, most);
    };
    add(1, std::log(0.02), std::log(1000.0));
    add(1, std::log(smallest_noise), std::log(2.0));
    add(h.warp.size(), -max_warp, max_warp);
    add(h.direction.size(), -max_direction, max_direction);
    add(h.log_trend ? 1 : 0, std::log(1e-6), std::log(1e4));
  }
  /// -log density, up to a constant. Its derivatives are added to the gradient's components.
  double add(const Hyper& h, std::vector<double>* gradient) const {
    double sum = 0;
    const auto one = [&](std::size_t i, double value, double mean, double sd) {
      const double z = (value - mean) / sd;
      sum += z * z / 2;
      if (gradient != nullptr) (*gradient)[i] += z / sd;
    };
    const std::size_t features = h.features();
    for (std::size_t k = 0; k < features; ++k) one(k, h.log[k], length_mean, length_sd);
    one(features, h.log[features], signal_mean, signal_sd);
    one(features + 1, h.log[features + 1], noise_mean, noise_sd);
    for (std::size_t i = 0; i < h.warp.size(); ++i) one(h.at_warp() + i, h.warp[i], 0, warp_sd);
    for (std::size_t i = 0; i < h.direction.size(); ++i) one(h.at_direction() + i, h.direction[i], 0, direction_sd);
    if (h.log_trend) one(h.at_trend(), *h.log_trend, trend_mean, trend_sd);
    return sum;
  }
};

}  // namespace hypertune::inline v0::detail::gp
