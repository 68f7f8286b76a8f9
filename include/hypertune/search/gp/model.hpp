// A Gaussian process: what it takes in, its likelihood with gradients, its posterior.
#pragma once

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/detail/linear.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::detail::gp {

template <class>
struct BasicInputs;
using Inputs = BasicInputs<void>;

/// The inputs of a model, one column per feature, so that distances are summed over contiguous memory. A numeric
/// feature lies in [0, 1] or thereabouts; a categorical one is a label, equal or not.
template <class Lazy>
struct BasicInputs {
  std::vector<std::uint8_t> categorical;     // by feature
  std::vector<std::vector<double>> columns;  // by feature, then point

  explicit BasicInputs(std::vector<std::uint8_t> kinds = {})
      : categorical(std::move(kinds)), columns(categorical.size()) {}
  std::size_t features() const { return columns.size(); }
  std::size_t size() const { return points_; }
  void add(std::span<const double> point) {
    for (std::size_t k = 0; k < columns.size(); ++k) columns[k].push_back(point[k]);
    ++points_;
  }

 private:
  std::size_t points_ = 0;  // there may be no feature at all
};

/// sums[j] += weight * (x[j] - at)^2
HYPERTUNE_HOT inline void add_squares(double weight, double at, const double* __restrict x, double* __restrict sums,
                                      std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const double d = x[j] - at;
    sums[j] += weight * d * d;
  }
}
HYPERTUNE_HOT inline void add_unequal(double weight, double at, const double* __restrict x, double* __restrict sums,
                                      std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += x[j] == at ? 0.0 : weight;
}
/// The sum of factor[j] * (x[j] - at)^2, and of factor[j] where x[j] is not `at`.
HYPERTUNE_HOT inline double sum_squares(const double* factor, double at, const double* x, std::size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double d0 = x[j] - at, d1 = x[j + 1] - at, d2 = x[j + 2] - at, d3 = x[j + 3] - at;
    s0 += factor[j] * d0 * d0;
    s1 += factor[j + 1] * d1 * d1;
    s2 += factor[j + 2] * d2 * d2;
    s3 += factor[j + 3] * d3 * d3;
  }
  for (; j < n; ++j) s0 += factor[j] * (x[j] - at) * (x[j] - at);
  return (s0 + s1) + (s2 + s3);
}
HYPERTUNE_HOT inline double sum_unequal(const double* factor, double at, const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += x[j] == at ? 0.0 : factor[j];
  return sum;
}
/// The sum of factor[j] * (at - x[j]).
HYPERTUNE_HOT inline double sum_differences(const double* factor, double at, const double* x, std::size_t n) {
  double s0 = 0, s1 = 0;
  std::size_t j = 0;
  for (; j + 2 <= n; j += 2) {
    s0 += factor[j] * (at - x[j]);
    s1 += factor[j + 1] * (at - x[j + 1]);
  }
  for (; j < n; ++j) s0 += factor[j] * (at - x[j]);
  return s0 + s1;
}

/// From squared distances to correlations in place, and -2 dk/d(r^2) where wanted. Matern 5/2.
HYPERTUNE_HOT inline void matern(double* squares, double* slopes, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const double r = std::sqrt(5 * squares[j]);
    const double e = std::exp(-r);
    if (slopes != nullptr) slopes[j] = 5.0 / 3 * (1 + r) * e;
    squares[j] = (1 + r + r * r / 3) * e;
  }
}

/// What is learnt of the kernel, all as logarithms: a lengthscale per feature, the signal's variance, the noise's.
struct Hyper {
  std::vector<double> log;  // features, then signal, then noise

  std::size_t features() const { return log.size() - 2; }
  double weight(std::size_t k) const { return std::exp(-2 * log[k]); }  // 1 / lengthscale^2
  double signal() const { return std::exp(log[features()]); }
  double noise() const { return std::exp(log[features() + 1]); }
};

/// The prior of the hyperparameters: lengthscales grow with the root of the number of features, which keeps the
/// complexity of the functions that are expected the same whatever the dimension. Hvarfner, Hellsten, Nardi, "Vanilla
/// Bayesian Optimization Performs Great in High Dimensions", ICML 2024. The location and width are less than theirs
/// (exp(-1) and 1.2 for exp(1.41) and 1.73): with theirs, a dimension whose effect is small beside others' is soon held
/// for irrelevant and left at a bound. Outputs are expected to be standardised.
struct HyperPrior {
  explicit HyperPrior(std::size_t features)
      : length_mean(-1 + std::log(static_cast<double>(std::max<std::size_t>(1, features))) / 2),
        root(std::sqrt(static_cast<double>(std::max<std::size_t>(1, features)))) {}
  double length_mean, root;
  double length_sd = 1.2;
  double signal_mean = 0, signal_sd = 0.7;
  double noise_mean = -8, noise_sd = 3;
  double smallest_noise = 1e-8;

  Hyper start(std::size_t features, double length, double noise) const {
    Hyper h{std::vector<double>(features + 2, std::log(length * root))};
    h.log[features] = 0;
    h.log[features + 1] = std::log(noise);
    return h;
  }
  void bounds(std::size_t features, std::vector<double>& lower, std::vector<double>& upper) const {
    lower.assign(features, std::log(0.01));
    upper.assign(features, std::log(1000.0 * root));
    lower.insert(lower.end(), {std::log(0.02), std::log(smallest_noise)});
    upper.insert(upper.end(), {std::log(1000.0), std::log(2.0)});
  }
  /// -log density, up to a constant, added to the gradient's components.
  double add(const Hyper& h, std::vector<double>* gradient) const {
    double sum = 0;
    const auto one = [&](std::size_t i, double mean, double sd) {
      const double z = (h.log[i] - mean) / sd;
      sum += z * z / 2;
      if (gradient != nullptr) (*gradient)[i] += z / sd;
    };
    for (std::size_t k = 0; k < h.features(); ++k) one(k, length_mean, length_sd);
    one(h.features(), signal_mean, signal_sd);
    one(h.features() + 1, noise_mean, noise_sd);
    return sum;
  }
};

/// The mean of a posterior and its variance, without noise, with their gradients by feature (0 for categorical ones).
struct Posterior {
  double mean = 0, variance = 1;
  std::vector<double> mean_slope, variance_slope;
};

template <class>
class BasicModel;
using Model = BasicModel<void>;

/// A Gaussian process with a constant mean (of prior N(0, 1), integrated by its best value), a Matern 5/2 kernel with a
/// lengthscale per feature, and Gaussian noise, conditioned on data.
template <class Lazy>
class BasicModel {
 public:
  BasicModel() = default;

  /// nullopt if the covariance cannot be factored, which takes values that are not finite.
  static std::optional<Model> of(Inputs inputs, std::vector<double> outputs, Hyper hyper) {
    Model m;
    m.inputs_ = std::move(inputs);
    m.outputs_ = std::move(outputs);
    m.hyper_ = std::move(hyper);
    m.read_hyper();
    auto factor = Cholesky::of(m.covariance(nullptr));
    if (!factor) return std::nullopt;
    m.factor_ = std::move(*factor);
    m.condition();
    return m;
  }

  std::size_t size() const { return outputs_.size(); }
  const Inputs& inputs() const { return inputs_; }
  const std::vector<double>& outputs() const { return outputs_; }
  const Hyper& hyper() const { return hyper_; }

  /// -log of the marginal likelihood of the outputs, without the constant n/2 log 2 pi, and its gradient by the
  /// logarithms of the hyperparameters. +infinity where the covariance cannot be factored.
  static double loss(const Inputs& inputs, const std::vector<double>& outputs, const Hyper& hyper,
                     std::vector<double>* gradient) {
    Model m;
    m.inputs_ = inputs;  // copied: small beside the n^3 that follow
    m.outputs_ = outputs;
    m.hyper_ = hyper;
    m.read_hyper();
    const std::size_t n = m.size();
    Matrix slopes;
    Matrix covariance = m.covariance(gradient == nullptr ? nullptr : &slopes);
    auto factor = Cholesky::of(covariance);
    if (!factor) return std::numeric_limits<double>::infinity();
    m.factor_ = std::move(*factor);
    m.condition();
    double fit = m.mean_ * m.mean_;
    for (std::size_t i = 0; i < n; ++i) fit += (outputs[i] - m.mean_) * m.alpha_[i];
    if (gradient != nullptr) m.loss_gradient(covariance, slopes, *gradient);
    return fit / 2 + m.factor_.log_determinant() / 2;
  }

  /// One more observation, in O(n^2). False, and nothing is changed, where it is a duplicate that the factor cannot
  /// take.
  bool append(std::span<const double> point, double output) {
    std::vector<double> row(size() + 1);
    covariances(point, row.data(), nullptr);
    row.back() = signal_ + noise_;
    if (!factor_.append(row)) return false;
    inputs_.add(point);
    outputs_.push_back(output);
    condition();
    return true;
  }

  /// Each row of `points` has one entry per feature.
  void posterior(const Matrix& points, std::size_t count, std::vector<double>& means,
                 std::vector<double>& variances) const {
    Matrix k(count, size());
    means.resize(count);
    variances.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      covariances({points.row(i), points.cols()}, k.row(i), nullptr);
      means[i] = mean_ + dot(k.row(i), alpha_.data(), size());
    }
    factor_.solve_lower(k);
    for (std::size_t i = 0; i < count; ++i) variances[i] = bounded(signal_ - dot(k.row(i), k.row(i), size()));
  }

  /// At one point.
  void posterior(std::span<const double> point, Posterior& p, bool with_slopes) const {
    const std::size_t n = size();
    std::vector<double> k(n), slopes(n), solved;
    covariances(point, k.data(), with_slopes ? slopes.data() : nullptr);
    p.mean = mean_ + dot(k.data(), alpha_.data(), n);
    solved = k;
    factor_.solve_lower(solved);
    p.variance = bounded(signal_ - dot(solved.data(), solved.data(), n));
    if (!with_slopes) return;
    factor_.solve_upper(solved);
    p.mean_slope.assign(point.size(), 0);
    p.variance_slope.assign(point.size(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      k[i] = -slopes[i] * alpha_[i];
      solved[i] *= 2 * slopes[i];
    }
    for (std::size_t f = 0; f < point.size(); ++f) {
      if (inputs_.categorical[f] != 0) continue;
      const double* column = inputs_.columns[f].data();
      p.mean_slope[f] = weights_[f] * sum_differences(k.data(), point[f], column, n);
      p.variance_slope[f] = weights_[f] * sum_differences(solved.data(), point[f], column, n);
    }
  }

  /// The posterior means at the observed points themselves.
  std::vector<double> fitted() const {
    std::vector<double> means(size());
    for (std::size_t i = 0; i < size(); ++i) means[i] = outputs_[i] - (noise_ + factor_.jitter()) * alpha_[i];
    return means;
  }

 private:
  void read_hyper() {
    weights_.resize(inputs_.features());
    for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] = hyper_.weight(k);
    signal_ = hyper_.signal();
    noise_ = hyper_.noise();
  }
  // Rounding leaves no variance below this.
  double bounded(double variance) const { return std::max(variance, 1e-12 * signal_); }

  // k[j]: the covariance of `point` with observation j; slopes[j]: -2 dk/d(r^2).
  void covariances(std::span<const double> point, double* k, double* slopes) const {
    const std::size_t n = size();
    distances(point.data(), 0, k, n);
    matern(k, slopes, n);
    for (std::size_t j = 0; j < n; ++j) k[j] *= signal_;
    if (slopes != nullptr)
      for (std::size_t j = 0; j < n; ++j) slopes[j] *= signal_;
  }
  void distances(const double* point, std::size_t index, double* sums, std::size_t n) const {
    std::fill_n(sums, n, 0.0);
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const double* column = inputs_.columns[k].data();
      const double at = point != nullptr ? point[k] : column[index];
      if (inputs_.categorical[k] != 0)
        add_unequal(weights_[k], at, column, sums, n);
      else
        add_squares(weights_[k], at, column, sums, n);
    }
  }
  // The lower triangle; slopes as correlations, without the signal's variance.
  Matrix covariance(Matrix* slopes) const {
    const std::size_t n = size();
    Matrix c(n, n);
    if (slopes != nullptr) *slopes = Matrix(n, n);
    for (std::size_t i = 0; i < n; ++i) {
      distances(nullptr, i, c.row(i), i);
      matern(c.row(i), slopes != nullptr ? slopes->row(i) : nullptr, i);
      for (std::size_t j = 0; j < i; ++j) c(i, j) *= signal_;
      c(i, i) = signal_ + noise_;
    }
    return c;
  }
  void condition() {
    const std::size_t n = size();
    std::vector<double> ones(n, 1.0);
    alpha_ = outputs_;
    factor_.solve(alpha_);
    factor_.solve(ones);
    double weight = 1, sum = 0;  // 1: of the mean's own prior
    for (std::size_t i = 0; i < n; ++i) {
      weight += ones[i];
      sum += alpha_[i];
    }
    mean_ = sum / weight;
    axpy(-mean_, ones.data(), alpha_.data(), n);
  }
  void loss_gradient(const Matrix& covariance, const Matrix& slopes, std::vector<double>& gradient) const {
    const std::size_t n = size(), d = inputs_.features();
    gradient.assign(d + 2, 0.0);
    const Matrix inverse = factor_.inverse();
    std::vector<double> factors(n);
    double by_signal = 0, by_noise = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double* inv = inverse.row(i);
      const double* slope = slopes.row(i);
      const double* cov = covariance.row(i);
      for (std::size_t j = 0; j < i; ++j) {
        const double w = inv[j] - alpha_[i] * alpha_[j];  // d loss / d covariance, times 2
        by_signal += w * cov[j];
        factors[j] = w * slope[j];
      }
      const double w = inv[i] - alpha_[i] * alpha_[i];
      by_signal += w * signal_ / 2;
      by_noise += w * noise_ / 2;
      for (std::size_t k = 0; k < d; ++k) {
        const double* column = inputs_.columns[k].data();
        gradient[k] += inputs_.categorical[k] != 0 ? sum_unequal(factors.data(), column[i], column, i)
                                                   : sum_squares(factors.data(), column[i], column, i);
      }
    }
    for (std::size_t k = 0; k < d; ++k) gradient[k] *= weights_[k] * signal_;
    gradient[d] = by_signal;
    gradient[d + 1] = by_noise;
  }

  Inputs inputs_;
  std::vector<double> outputs_, weights_, alpha_;
  Hyper hyper_;
  Cholesky factor_;
  double signal_ = 1, noise_ = 0, mean_ = 0;
};

/// The most probable hyperparameters, from the best of `starts`, and -log of their probability.
struct Fit {
  Hyper hyper;
  double loss = std::numeric_limits<double>::infinity();
};
template <class = void>
Fit fit_hyper(const Inputs& inputs, const std::vector<double>& outputs, const std::vector<Hyper>& starts,
              int evaluations) {
  const HyperPrior prior(inputs.features());
  std::vector<double> lower, upper;
  prior.bounds(inputs.features(), lower, upper);
  Fit best;
  for (const Hyper& start : starts) {
    Hyper at;
    std::vector<double> x = start.log;
    const auto loss = [&](const std::vector<double>& log, std::vector<double>& gradient) {
      at.log = log;
      const double value = Model::loss(inputs, outputs, at, &gradient);
      return std::isfinite(value) ? value + prior.add(at, &gradient) : value;
    };
    const double value = minimise(loss, x, lower, upper,
                                  {.evaluations = evaluations, .tolerance = 1e-3, .progress = 1e-5, .first_step = 1});
    if (best.hyper.log.empty() || value < best.loss) best = {Hyper{x}, value};
  }
  return best;
}

}  // namespace hypertune::detail::gp
