// A Gaussian process of the loss of full runs that uses the losses measured earlier in the runs.
#pragma once

#include <hypertune/search/detail/gp/logarithms.hpp>
#include <hypertune/search/detail/gp/model.hpp>

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
/// fidelity", International Journal for Uncertainty Quantification 2014: a trial that has reached a level has reached
/// those below, so that the levels can be learnt one after the other. A single level is a plain Gaussian process.
class Chain {
 public:
  Chain() = default;
  explicit Chain(Model only) { add(0, std::move(only)); }

  /// Adds a level on top. `difference` models its outputs minus `slope` times those of the level below. Trials at this
  /// level whose outputs are below `bar` continue to the next one.
  void add(double slope, Model difference, double bar = 0) {
    slopes_.push_back(slope);
    models_.push_back(std::move(difference));
    bars_.push_back(bar);
  }
  std::size_t levels() const { return models_.size(); }
  const Model& operator[](std::size_t level) const { return models_[level]; }

  /// The posterior of the highest level, without noise. Adds to `passing` the logarithm of the probability that a trial
  /// passes all levels below.
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
  /// The same at one point. Sets `passing` to that logarithm and `passing_slope` to its gradient.
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

  /// Adds a running trial with its expected outputs from `level` on, so that parallel suggestions spread.
  void add_pending(std::span<const double> point, std::size_t level = 0) {
    Posterior p;
    for (; level < models_.size(); ++level) {
      models_[level].posterior(point, p, false);
      models_[level].append(point, p.mean);  // leaves out a duplicate, which would only count as noise
    }
  }

 private:
  // The standard deviation of a measurement, which has noise too.
  double noisy_sd(std::size_t level, double variance) const {
    return std::sqrt(variance + models_[level].hyper().noise());
  }

  std::vector<double> slopes_;  // the first is not used
  std::vector<double> bars_;    // the last is not used
  std::vector<Model> models_;
};

}  // namespace hypertune::inline v0::detail::gp
