// A Gaussian process: what it takes in, its likelihood with gradients, its posterior.
#pragma once

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/detail/linear.hpp>
#include <hypertune/search/gp/hyper.hpp>
#include <hypertune/search/gp/warp.hpp>

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

/// The sums of factor[j] * (x[i] - x[j]) * (a[i] - a[j]), and of the same with b, over all j < i.
HYPERTUNE_HOT inline std::pair<double, double> sum_changes(const double* factor, const double* x, const double* a,
                                                           const double* b, std::size_t i) {
  double by_a = 0, by_b = 0;
  for (std::size_t j = 0; j < i; ++j) {
    const double change = factor[j] * (x[i] - x[j]);
    by_a += change * (a[i] - a[j]);
    by_b += change * (b[i] - b[j]);
  }
  return {by_a, by_b};
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
    m.warp_inputs(nullptr, nullptr);
    auto factor = Cholesky::of(m.covariance(nullptr));
    if (!factor) return std::nullopt;
    m.factor_ = std::move(*factor);
    m.condition();
    return m;
  }

  std::size_t size() const { return outputs_.size(); }
  const std::vector<double>& outputs() const { return outputs_; }
  const Hyper& hyper() const { return hyper_; }

  /// -log of the marginal likelihood of the outputs, without the constant n/2 log 2 pi, and its gradient by the
  /// logarithms of the hyperparameters, as in Hyper::flat(). +infinity where the covariance cannot be factored.
  static double loss(const Inputs& inputs, const std::vector<double>& outputs, const Hyper& hyper,
                     std::vector<double>* gradient) {
    Model m;
    m.inputs_ = inputs;  // copied: small beside the n^3 that follow
    m.outputs_ = outputs;
    m.hyper_ = hyper;
    m.read_hyper();
    Inputs by_a, by_b;
    m.warp_inputs(gradient != nullptr ? &by_a : nullptr, &by_b);
    const std::size_t n = m.size();
    Matrix slopes;
    Matrix covariance = m.covariance(gradient == nullptr ? nullptr : &slopes);
    auto factor = Cholesky::of(covariance);
    if (!factor) return std::numeric_limits<double>::infinity();
    m.factor_ = std::move(*factor);
    m.condition();
    double fit = m.mean_ * m.mean_;
    for (std::size_t i = 0; i < n; ++i) fit += (outputs[i] - m.mean_) * m.alpha_[i];
    if (gradient != nullptr) m.loss_gradient(covariance, slopes, by_a, by_b, *gradient);
    return fit / 2 + m.factor_.log_determinant() / 2;
  }

  /// One more observation, in O(n^2). False, and nothing is changed, where it is a duplicate that the factor cannot
  /// take.
  bool append(std::span<const double> unwarped, double output) {
    std::vector<double> warped;
    const std::span<const double> point = warp(unwarped, warped, nullptr);
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
    std::vector<double> warped;
    for (std::size_t i = 0; i < count; ++i) {
      covariances(warp({points.row(i), points.cols()}, warped, nullptr), k.row(i), nullptr);
      means[i] = mean_ + dot(k.row(i), alpha_.data(), size());
    }
    factor_.solve_lower(k);
    for (std::size_t i = 0; i < count; ++i) variances[i] = bounded(signal_ - dot(k.row(i), k.row(i), size()));
  }

  /// At one point.
  void posterior(std::span<const double> unwarped, Posterior& p, bool with_slopes) const {
    const std::size_t n = size();
    std::vector<double> k(n), slopes(n), solved, warped, bends;
    const std::span<const double> point = warp(unwarped, warped, with_slopes ? &bends : nullptr);
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
      if (bends.empty()) continue;
      p.mean_slope[f] *= bends[f];
      p.variance_slope[f] *= bends[f];
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
  bool warps(std::size_t feature) const { return !hyper_.warp.empty() && inputs_.categorical[feature] == 0; }
  Warped warped(double x, std::size_t feature) const {
    return {x, hyper_.warp[2 * feature], hyper_.warp[2 * feature + 1]};
  }
  // With the derivatives by the logarithms of a and b, where wanted.
  void warp_inputs(Inputs* by_a, Inputs* by_b) {
    if (hyper_.warp.empty()) return;
    if (by_a != nullptr) *by_a = *by_b = inputs_;
    for (std::size_t k = 0; k < inputs_.features(); ++k) {
      if (!warps(k)) continue;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        double& x = inputs_.columns[k][i];
        const Warped w = warped(x, k);
        x = w.value;
        if (by_a == nullptr) continue;
        by_a->columns[k][i] = w.by_log_a;
        by_b->columns[k][i] = w.by_log_b;
      }
    }
  }
  // The point itself where nothing is warped, else `result`. `bends`: the slopes by feature.
  std::span<const double> warp(std::span<const double> point, std::vector<double>& result,
                               std::vector<double>* bends) const {
    if (hyper_.warp.empty()) return point;
    result.assign(point.begin(), point.end());
    if (bends != nullptr) bends->assign(point.size(), 1.0);
    for (std::size_t k = 0; k < point.size(); ++k) {
      if (!warps(k)) continue;
      const Warped w = warped(point[k], k);
      result[k] = w.value;
      if (bends != nullptr) (*bends)[k] = w.slope;
    }
    return result;
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
  void loss_gradient(const Matrix& covariance, const Matrix& slopes, const Inputs& by_a, const Inputs& by_b,
                     std::vector<double>& gradient) const {
    const std::size_t n = size(), d = inputs_.features();
    gradient.assign(d + 2 + hyper_.warp.size(), 0.0);
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
        if (!warps(k)) continue;
        const auto along = sum_changes(factors.data(), column, by_a.columns[k].data(), by_b.columns[k].data(), i);
        gradient[d + 2 + 2 * k] -= weights_[k] * signal_ * along.first;
        gradient[d + 3 + 2 * k] -= weights_[k] * signal_ * along.second;
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

/// The most probable hyperparameters, from the best of `starts`, and -log of their probability. Inputs are warped where
/// they are in the start.
struct Fit {
  Hyper hyper;
  double loss = std::numeric_limits<double>::infinity();
};
template <class = void>
Fit fit_hyper(const Inputs& inputs, const std::vector<double>& outputs, const std::vector<Hyper>& starts,
              int evaluations) {
  const HyperPrior prior(inputs.features());
  std::vector<double> lower, upper;
  Fit best;
  for (const Hyper& start : starts) {
    prior.bounds(start, lower, upper);
    std::vector<double> x = start.flat();
    const auto loss = [&](const std::vector<double>& all, std::vector<double>& gradient) {
      const Hyper at = Hyper::of(all, inputs.features());
      const double value = Model::loss(inputs, outputs, at, &gradient);
      return std::isfinite(value) ? value + prior.add(at, &gradient) : value;
    };
    const double value = minimise(loss, x, lower, upper,
                                  {.evaluations = evaluations, .tolerance = 1e-3, .progress = 1e-5, .first_step = 1});
    if (best.hyper.log.empty() || value < best.loss) best = {Hyper::of(x, inputs.features()), value};
  }
  return best;
}

}  // namespace hypertune::detail::gp
