// A Gaussian process: its likelihood with gradients, and its posterior.
#pragma once

#include <hypertune/detail/linear.hpp>
#include <hypertune/search/detail/gp/hyper.hpp>
#include <hypertune/search/detail/gp/inputs.hpp>
#include <hypertune/search/detail/gp/warp.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// Mean and variance of a posterior, without noise, with their gradients by feature (0 for categorical ones).
struct Posterior {
  double mean = 0, variance = 1;
  std::vector<double> mean_slope, variance_slope;
};

/// A Gaussian process with a constant mean (with prior N(0, 1); its most probable value is used), a Matern 5/2 kernel
/// with a lengthscale per feature, and Gaussian noise, conditioned on data.
///
/// If the hyperparameters have a direction v, distances grow along it, too: the kernel's r^2 is the sum of
/// (d_k / lengthscale_k)^2 plus (v . d)^2. So changes along one line across the features (a ridge, an oblique valley)
/// are learnt as such. This is the factor analysis distance of Rasmussen and Williams, "Gaussian Processes for Machine
/// Learning", 2006, section 5.1, of rank one.
///
/// If they have a trend, a quadratic of the numeric features with learnt coefficients is added: the kernel
/// (1 + u . u')^2 (the same book, section 4.2.2), with u from -1 to 1 in each feature, after the warp.
class Model {
 public:
  Model() = default;

  /// nullopt if the covariance cannot be factored, which happens only for non-finite values.
  static std::optional<Model> of(Inputs inputs, std::vector<double> outputs, Hyper hyper) {
    Model m;
    m.inputs_ = std::move(inputs);
    m.outputs_ = std::move(outputs);
    m.hyper_ = std::move(hyper);
    m.read_hyper();
    m.warp_inputs(nullptr, nullptr);
    m.project_inputs();
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
  /// hyperparameters in the order of Hyper::flat(). +infinity if the covariance cannot be factored.
  static double loss(const Inputs& inputs, const std::vector<double>& outputs, const Hyper& hyper,
                     std::vector<double>* gradient) {
    Model m;
    m.inputs_ = inputs;  // a copy is cheap compared with the n^3 operations below
    m.outputs_ = outputs;
    m.hyper_ = hyper;
    m.read_hyper();
    Terms terms;
    m.warp_inputs(gradient != nullptr ? &terms.by_a : nullptr, &terms.by_b);
    m.project_inputs();
    const std::size_t n = m.size();
    terms.covariance = m.covariance(gradient != nullptr ? &terms : nullptr);
    auto factor = Cholesky::of(terms.covariance);
    if (!factor) return std::numeric_limits<double>::infinity();
    m.factor_ = std::move(*factor);
    m.condition();
    double fit = m.mean_ * m.mean_;
    for (std::size_t i = 0; i < n; ++i) fit += (outputs[i] - m.mean_) * m.alpha_[i];
    if (gradient != nullptr) *gradient = m.loss_gradient(terms);
    return fit / 2 + m.factor_.log_determinant() / 2;
  }

  /// Adds one observation, in O(n^2). Returns false and changes nothing if it is a duplicate with which the covariance
  /// cannot be factored.
  bool append(std::span<const double> unwarped, double output) {
    std::vector<double> warped;
    const std::span<const double> point = warp(unwarped, warped, nullptr);
    std::vector<double> row(size() + 1);
    covariances(point, row.data(), nullptr);
    row.back() = prior_variance(point) + noise_;
    if (!factor_.append(row)) return false;
    inputs_.add(point);
    if (directed()) projected_.push_back(projection(point));
    outputs_.push_back(output);
    condition();
    return true;
  }

  /// Means and variances at the first `count` rows of `points`, which have one entry per feature.
  void posterior(const Matrix& points, std::size_t count, std::vector<double>& means,
                 std::vector<double>& variances) const {
    Matrix k(count, size());
    means.resize(count);
    variances.resize(count);
    std::vector<double> warped;
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const double> point = warp({points.row(i), points.cols()}, warped, nullptr);
      covariances(point, k.row(i), nullptr);
      means[i] = mean_ + dot(k.row(i), alpha_.data(), size());
      variances[i] = prior_variance(point);
    }
    factor_.solve_lower(k);
    for (std::size_t i = 0; i < count; ++i)
      variances[i] = bounded(variances[i] - dot(k.row(i), k.row(i), size()), variances[i]);
  }

  /// The posterior at one point.
  void posterior(std::span<const double> unwarped, Posterior& p, bool with_slopes) const {
    const std::size_t n = size();
    std::vector<double> k(n), solved, warped, bends;
    Slopes slopes;
    const std::span<const double> point = warp(unwarped, warped, with_slopes ? &bends : nullptr);
    covariances(point, k.data(), with_slopes ? &slopes : nullptr);
    p.mean = mean_ + dot(k.data(), alpha_.data(), n);
    solved = k;
    factor_.solve_lower(solved);
    const double prior = prior_variance(point);
    p.variance = bounded(prior - dot(solved.data(), solved.data(), n), prior);
    if (!with_slopes) return;
    p.mean_slope = gradient(point, alpha_, slopes);
    factor_.solve_upper(solved);
    for (double& s : solved) s *= -2;
    p.variance_slope = gradient(point, solved, slopes);
    for (std::size_t f = 0; f < point.size(); ++f) {
      if (inputs_.categorical[f] != 0) continue;
      if (trend_ > 0) p.variance_slope[f] += trend_ * 16 * inner(point, point) * (point[f] - 0.5);
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

  /// The direction in which the mean changes most, on average over the observed points: of unit length, and 0 (up to
  /// rounding) for labels. Constantine, Dow, Wang, "Active Subspace Methods in Theory and Practice", SIAM Journal on
  /// Scientific Computing 2014; but each gradient is weighted by its length instead of its square, as a few gradients
  /// may be steeper than all others together.
  std::vector<double> steepest() const {
    const std::size_t n = size(), d = inputs_.features();
    Matrix outer(d, d);
    std::vector<double> k(n), point(d);
    Slopes slopes;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t f = 0; f < d; ++f) point[f] = inputs_.columns[f][i];
      covariances(point, k.data(), &slopes);
      const std::vector<double> g = gradient(point, alpha_, slopes);
      const double length = std::sqrt(dot(g.data(), g.data(), d));
      if (!(length > 0)) continue;
      for (std::size_t f = 0; f < d; ++f) axpy(g[f] / length, g.data(), outer.row(f), d);
    }
    const auto eigen = symmetric_eigen(std::move(outer));
    if (!eigen || !(eigen->values.back() > 0)) return std::vector<double>(d, 0.0);
    const double* top = eigen->vectors.row(d - 1);
    return {top, top + d};
  }

 private:
  // Derivatives of the covariances of a point with the observations.
  struct Slopes {
    std::vector<double> by_distance;  // -2 dk/d(r^2)
    std::vector<double> by_inner;     // dk/d(1 + u . u'), if there is a trend
  };
  // The terms of the likelihood's gradient; lower triangles.
  struct Terms {
    Matrix covariance;
    Matrix slopes;  // -2 dk/d(r^2), as correlations, without the signal's variance
    Matrix inners;  // 1 + u . u', if there is a trend
    Inputs by_a, by_b;
  };

  void read_hyper() {
    weights_.resize(inputs_.features());
    for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] = hyper_.weight(k);
    signal_ = hyper_.signal();
    noise_ = hyper_.noise();
    if (!hyper_.log_trend) return;
    double average = 1;  // of 1 + u . u over the cube, so that the variance has the same meaning in all dimensions
    for (const auto label : inputs_.categorical) average += label != 0 ? 0 : 1.0 / 3;
    trend_ = hyper_.trend() / (average * average);
  }
  bool directed() const { return !hyper_.direction.empty(); }
  double projection(std::span<const double> point) const {
    double sum = 0;
    for (std::size_t k = 0; k < point.size(); ++k)
      if (inputs_.categorical[k] == 0) sum += hyper_.direction[k] * point[k];
    return sum;
  }
  void project_inputs() {
    if (!directed()) return;
    projected_.assign(inputs_.size(), 0.0);
    for (std::size_t k = 0; k < inputs_.features(); ++k)
      if (inputs_.categorical[k] == 0)
        axpy(hyper_.direction[k], inputs_.columns[k].data(), projected_.data(), inputs_.size());
  }
  // 1 + u . u', where u is from -1 to 1 in each numeric feature.
  double inner(std::span<const double> a, std::span<const double> b) const {
    double sum = 1;
    for (std::size_t k = 0; k < a.size(); ++k)
      if (inputs_.categorical[k] == 0) sum += 4 * (a[k] - 0.5) * (b[k] - 0.5);
    return sum;
  }
  double prior_variance(std::span<const double> point) const {
    if (!(trend_ > 0)) return signal_;
    const double i = inner(point, point);
    return signal_ + trend_ * i * i;
  }
  // sums[j]: inner() of a point (or of observation `index`, if it is null) with observation j of the first n.
  void inners(const double* point, std::size_t index, double* sums, std::size_t n) const {
    std::fill_n(sums, n, 1.0);
    for (std::size_t k = 0; k < inputs_.features(); ++k) {
      if (inputs_.categorical[k] != 0) continue;
      const double* column = inputs_.columns[k].data();
      const double at = 4 * ((point != nullptr ? point[k] : column[index]) - 0.5);
      axpy(at, column, sums, n);
      for (std::size_t j = 0; j < n; ++j) sums[j] -= at / 2;
    }
  }
  bool warps(std::size_t feature) const { return !hyper_.warp.empty() && inputs_.categorical[feature] == 0; }
  Warped warped(double x, std::size_t feature) const {
    return {x, hyper_.warp[2 * feature], hyper_.warp[2 * feature + 1]};
  }
  // Warps the inputs; by_a and by_b get the derivatives by the logarithms of a and b, unless they are null.
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
  // The warped point, in `result`; or the point itself if nothing is warped. `bends`: the slopes by feature.
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
  // The posterior variance cannot be smaller than this because of rounding.
  static double bounded(double variance, double prior) { return std::max(variance, 1e-12 * prior); }

  // k[j]: the covariance of `point` with observation j.
  void covariances(std::span<const double> point, double* k, Slopes* slopes) const {
    const std::size_t n = size();
    if (slopes != nullptr) slopes->by_distance.resize(n);
    distances(point.data(), 0, k, n);
    matern(k, slopes != nullptr ? slopes->by_distance.data() : nullptr, n);
    for (std::size_t j = 0; j < n; ++j) k[j] *= signal_;
    if (slopes != nullptr)
      for (double& s : slopes->by_distance) s *= signal_;
    if (!(trend_ > 0)) return;
    std::vector<double> sums(n);
    inners(point.data(), 0, sums.data(), n);
    for (std::size_t j = 0; j < n; ++j) k[j] += trend_ * sums[j] * sums[j];
    if (slopes == nullptr) return;
    slopes->by_inner.resize(n);
    for (std::size_t j = 0; j < n; ++j) slopes->by_inner[j] = 2 * trend_ * sums[j];
  }
  // The gradient by feature of the sum of factors[j] times the covariance of `point` with observation j.
  std::vector<double> gradient(std::span<const double> point, const std::vector<double>& factors,
                               const Slopes& slopes) const {
    const std::size_t n = size();
    std::vector<double> result(point.size(), 0.0), by_distance(n), by_inner;
    for (std::size_t j = 0; j < n; ++j) by_distance[j] = -factors[j] * slopes.by_distance[j];
    const double along = directed() ? sum_differences(by_distance.data(), projection(point), projected_.data(), n) : 0;
    double sum_inner = 0;
    for (std::size_t j = 0; j < slopes.by_inner.size(); ++j)
      sum_inner += by_inner.emplace_back(factors[j] * slopes.by_inner[j]);
    for (std::size_t f = 0; f < point.size(); ++f) {
      if (inputs_.categorical[f] != 0) continue;
      const double* column = inputs_.columns[f].data();
      result[f] = weights_[f] * sum_differences(by_distance.data(), point[f], column, n);
      if (directed()) result[f] += hyper_.direction[f] * along;
      if (!by_inner.empty()) result[f] += 4 * (dot(by_inner.data(), column, n) - sum_inner / 2);
    }
    return result;
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
    if (!directed()) return;
    const double at = point != nullptr ? projection({point, weights_.size()}) : projected_[index];
    add_squares(1, at, projected_.data(), sums, n);
  }
  // The lower triangle of the covariance of the observations.
  Matrix covariance(Terms* terms) const {
    const std::size_t n = size();
    Matrix c(n, n);
    if (terms != nullptr) terms->slopes = Matrix(n, n);
    if (terms != nullptr && trend_ > 0) terms->inners = Matrix(n, n);
    std::vector<double> sums(trend_ > 0 ? n : 0);
    for (std::size_t i = 0; i < n; ++i) {
      distances(nullptr, i, c.row(i), i);
      matern(c.row(i), terms != nullptr ? terms->slopes.row(i) : nullptr, i);
      for (std::size_t j = 0; j < i; ++j) c(i, j) *= signal_;
      c(i, i) = signal_ + noise_;
      if (!(trend_ > 0)) continue;
      inners(nullptr, i, sums.data(), i + 1);
      for (std::size_t j = 0; j <= i; ++j) {
        c(i, j) += trend_ * sums[j] * sums[j];
        if (terms != nullptr) terms->inners(i, j) = sums[j];
      }
    }
    return c;
  }
  void condition() {
    const std::size_t n = size();
    std::vector<double> ones(n, 1.0);
    alpha_ = outputs_;
    factor_.solve(alpha_);
    factor_.solve(ones);
    double weight = 1, sum = 0;  // 1: from the prior of the mean
    for (std::size_t i = 0; i < n; ++i) {
      weight += ones[i];
      sum += alpha_[i];
    }
    mean_ = sum / weight;
    axpy(-mean_, ones.data(), alpha_.data(), n);
  }
  std::vector<double> loss_gradient(const Terms& terms) const {
    const std::size_t n = size(), d = inputs_.features();
    const std::size_t at_warp = hyper_.at_warp(), at_direction = hyper_.at_direction();
    std::vector<double> result(hyper_.at_trend() + (hyper_.log_trend ? 1 : 0), 0.0);
    const Matrix inverse = factor_.inverse();
    std::vector<double> factors(n), along(directed() ? n : 0), by_inner(trend_ > 0 ? n : 0);
    double by_signal = 0, by_noise = 0, by_trend = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double* inv = inverse.row(i);
      const double* slope = terms.slopes.row(i);
      const double* cov = terms.covariance.row(i);
      const double* inner = trend_ > 0 ? terms.inners.row(i) : nullptr;
      for (std::size_t j = 0; j < i; ++j) {
        const double w = inv[j] - alpha_[i] * alpha_[j];  // d loss / d covariance, times 2
        by_signal += w * cov[j];
        factors[j] = w * slope[j];
      }
      const double w = inv[i] - alpha_[i] * alpha_[i];
      by_signal += w * signal_ / 2;
      by_noise += w * noise_ / 2;
      for (std::size_t j = 0; inner != nullptr && j <= i; ++j) {
        const double of_pair = j == i ? w / 2 : inv[j] - alpha_[i] * alpha_[j];
        by_inner[j] = 2 * trend_ * of_pair * inner[j];
        const double of_trend = by_inner[j] * inner[j] / 2;
        by_trend += of_trend;
        if (j < i) by_signal -= of_trend;  // the covariance includes the trend
      }
      for (std::size_t j = 0; j < along.size() && j < i; ++j) along[j] = factors[j] * (projected_[i] - projected_[j]);
      for (std::size_t k = 0; k < d; ++k) {
        const double* column = inputs_.columns[k].data();
        if (inputs_.categorical[k] != 0) {
          result[k] += sum_unequal(factors.data(), column[i], column, i);
          continue;
        }
        result[k] += sum_squares(factors.data(), column[i], column, i);
        if (directed()) result[at_direction + k] -= signal_ * sum_differences(along.data(), column[i], column, i);
        if (!warps(k)) continue;
        const double *by_a = terms.by_a.columns[k].data(), *by_b = terms.by_b.columns[k].data();
        const auto change = sum_changes(factors.data(), column, by_a, by_b, i);
        result[at_warp + 2 * k] -= weights_[k] * signal_ * change.first;
        result[at_warp + 2 * k + 1] -= weights_[k] * signal_ * change.second;
        if (directed()) {
          const double factor = hyper_.direction[k] * signal_;
          result[at_warp + 2 * k] -= factor * sum_differences(along.data(), by_a[i], by_a, i);
          result[at_warp + 2 * k + 1] -= factor * sum_differences(along.data(), by_b[i], by_b, i);
        }
        if (inner == nullptr) continue;
        double from_middle = 0;
        for (std::size_t j = 0; j <= i; ++j) from_middle += by_inner[j] * (column[j] - 0.5);
        const auto of_inner = [&](const double* by) {
          return 4 * (by[i] * from_middle + (column[i] - 0.5) * dot(by_inner.data(), by, i + 1));
        };
        result[at_warp + 2 * k] += of_inner(by_a);
        result[at_warp + 2 * k + 1] += of_inner(by_b);
      }
    }
    for (std::size_t k = 0; k < d; ++k) result[k] *= weights_[k] * signal_;
    result[d] = by_signal;
    result[d + 1] = by_noise;
    if (hyper_.log_trend) result.back() = by_trend;
    return result;
  }

  Inputs inputs_;
  std::vector<double> outputs_, weights_, alpha_, projected_;
  Hyper hyper_;
  Cholesky factor_;
  double signal_ = 1, noise_ = 0, mean_ = 0, trend_ = 0;
};

}  // namespace hypertune::inline v0::detail::gp
