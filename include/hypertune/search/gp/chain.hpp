// The loss of a full run as a Gaussian process sees it through what was measured earlier on the way.
#pragma once

#include <hypertune/search/gp/logarithms.hpp>
#include <hypertune/search/gp/model.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// Levels of fidelity, the cheapest first: f_l(x) = slope_l f_(l-1)(x) + d_l(x), each d_l a Gaussian process of its own
/// that is independent of the levels below. This is the autoregressive model of Kennedy and O'Hagan, "Predicting the
/// output from a complex computer code when fast approximations are available", Biometrika 2000, in the recursive form
/// of Le Gratiet and Garnier, "Recursive co-kriging model for design of computer experiments with multiple levels of
/// fidelity", International Journal for Uncertainty Quantification 2014: what came to a level came to those below, so
/// that one level can be learnt after another. One level alone is a plain Gaussian process.
class Chain {
 public:
  Chain() = default;
  explicit Chain(Model only) { add(0, std::move(only)); }

  /// A level on top: `difference` is of what its outputs are beyond `slope` times the level below. Of the trials that
  /// come to it, those go on whose outputs are below `bar`.
  void add(double slope, Model difference, double bar = 0) {
    slopes_.push_back(slope);
    models_.push_back(std::move(difference));
    bars_.push_back(bar);
  }
  std::size_t levels() const { return models_.size(); }
  const Model& operator[](std::size_t level) const { return models_[level]; }

  /// Of the highest level; without noise. `passing` is added the logarithm of the probability that a trial is let
  /// through all levels below.
  void posterior(const Matrix& points, std::size_t count, std::vector<double>& means, std::vector<double>& variances,
                 std::vector<double>* passing = nullptr) const {
    models_.front().posterior(points, count, means, variances);
    std::vector<double> mean, variance;
    for (std::size_t l = 1; l < models_.size(); ++l) {
      for (std::size_t i = 0; passing != nullptr && i < count; ++i)
        (*passing)[i] += LogCdf((bars_[l - 1] - means[i]) / noisy_sd(l - 1, variances[i])).value;
      models_[l].posterior(points, count, mean, variance);
      for (std::size_t i = 0; i < count; ++i) {
        means[i] = slopes_[l] * means[i] + mean[i];
        variances[i] = slopes_[l] * slopes_[l] * variances[i] + variance[i];
      }
    }
  }
  /// At one point. `passing` is set to that logarithm, and `passing_slope` to its gradient.
  void posterior(std::span<const double> point, Posterior& p, bool with_slopes, double* passing = nullptr,
                 std::vector<double>* passing_slope = nullptr) const {
    models_.front().posterior(point, p, with_slopes);
    if (passing != nullptr) *passing = 0;
    if (passing_slope != nullptr) passing_slope->assign(point.size(), 0);
    Posterior own;
    for (std::size_t l = 1; l < models_.size(); ++l) {
      if (passing != nullptr) {
        const double sd = noisy_sd(l - 1, p.variance), z = (bars_[l - 1] - p.mean) / sd;
        const LogCdf passes(z);
        *passing += passes.value;
        for (std::size_t k = 0; with_slopes && passing_slope != nullptr && k < point.size(); ++k)
          (*passing_slope)[k] -= passes.slope * (p.mean_slope[k] + z * p.variance_slope[k] / (2 * sd)) / sd;
      }
      const double slope = slopes_[l];
      models_[l].posterior(point, own, with_slopes);
      p.mean = slope * p.mean + own.mean;
      p.variance = slope * slope * p.variance + own.variance;
      if (!with_slopes) continue;
      for (std::size_t k = 0; k < point.size(); ++k) {
        p.mean_slope[k] = slope * p.mean_slope[k] + own.mean_slope[k];
        p.variance_slope[k] = slope * slope * p.variance_slope[k] + own.variance_slope[k];
      }
    }
  }

  /// A trial that runs is believed to return what is expected of it from `level` on: the batch is spread.
  void believe(std::span<const double> point, std::size_t level = 0) {
    Posterior p;
    for (; level < models_.size(); ++level) {
      models_[level].posterior(point, p, false);
      models_[level].append(point, p.mean);  // a duplicate is left out, but for noise
    }
  }

 private:
  // What is measured there has noise, too.
  double noisy_sd(std::size_t level, double variance) const {
    return std::sqrt(variance + models_[level].hyper().noise());
  }

  std::vector<double> slopes_;  // the first is of no use
  std::vector<double> bars_;    // and the last
  std::vector<Model> models_;
};

}  // namespace hypertune::inline v0::detail::gp
