// The normal distribution that CMA-ES adapts, full or separable.
#pragma once

#include <hypertune/detail/linear.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace hypertune::inline v0::detail {

/// The recombination weights of a generation of `lambda`: positive ones for the better half, which sum to 1, and
/// negative ones for the rest (Hansen, "The CMA Evolution Strategy: A Tutorial", 2016, section 3 and table 1).
struct CmaWeights {
  std::vector<double> weights;
  std::size_t mu = 0;
  double mueff = 1;
  double c1 = 0, cmu = 0, cc = 0, cs = 0, damping = 1;

  CmaWeights() = default;
  CmaWeights(std::size_t dimensions, std::size_t lambda, bool separable) : weights(lambda), mu(lambda / 2) {
    const double n = static_cast<double>(dimensions);
    double sum = 0, squares = 0, negative = 0, negative_squares = 0;
    for (std::size_t i = 0; i < lambda; ++i) {
      weights[i] = std::log((static_cast<double>(lambda) + 1) / 2) - std::log(static_cast<double>(i + 1));
      if (i < mu) {
        sum += weights[i];
        squares += weights[i] * weights[i];
      } else {
        negative -= weights[i];
        negative_squares += weights[i] * weights[i];
      }
    }
    mueff = sum * sum / squares;
    c1 = 2 / ((n + 1.3) * (n + 1.3) + mueff);
    cmu = 2 * (0.25 + mueff + 1 / mueff - 2) / ((n + 2) * (n + 2) + mueff);
    if (separable) {  // n parameters to learn instead of n (n + 1) / 2 (Ros and Hansen 2008)
      c1 *= (n + 2) / 3;
      cmu *= (n + 2) / 3;
      c1 = std::min(c1, 0.5);
    }
    cmu = std::min(cmu, 1 - c1);
    cc = (4 + mueff / n) / (n + 4 + 2 * mueff / n);
    cs = (mueff + 2) / (n + mueff + 5);
    damping = 1 + 2 * std::max(0.0, std::sqrt((mueff - 1) / (n + 1)) - 1) + cs;
    const double negative_mueff = negative_squares > 0 ? negative * negative / negative_squares : 0;
    const double most = std::min({1 + c1 / cmu, 1 + 2 * negative_mueff / (mueff + 2), (1 - c1 - cmu) / (n * cmu)});
    for (std::size_t i = 0; i < lambda; ++i)
      weights[i] = i < mu ? weights[i] / sum : negative > 0 ? weights[i] / negative * std::max(0.0, most) : 0;
  }
};

/// One sample of an update.
struct CmaSample {
  const double* x;                        // coordinates
  double weight;                          // by rank; negative for the worse half
  bool foreign;                           // not drawn from the present distribution
  const unsigned char* counts = nullptr;  // by axis: whether the sample moves the mean; null: all do
};

/// N(mean, sigma^2 S C S), where S is the diagonal matrix of `stretch`. It keeps the deviation of discrete axes from
/// becoming too small.
class CmaDistribution {
 public:
  void start(std::span<const double> mean, double sigma, std::size_t lambda, bool separable) {
    const std::size_t n = mean.size();
    mean_.assign(mean.begin(), mean.end());
    sigma_ = sigma;
    separable_ = separable;
    w_ = CmaWeights(std::max<std::size_t>(n, 1), lambda, separable);
    path_c_.assign(n, 0);
    path_s_.assign(n, 0);
    stretch_.assign(n, 1);
    scale_.assign(n, 1);
    variance_.assign(n, 1);
    if (!separable) covariance_ = axes_ = Matrix::identity(n);
    generations_ = since_axes_ = 0;
    condition_ = 1;
  }

  std::size_t size() const { return mean_.size(); }
  const CmaWeights& weights() const { return w_; }
  std::vector<double>& mean() { return mean_; }
  const std::vector<double>& mean() const { return mean_; }
  std::vector<double>& stretch() { return stretch_; }
  double& sigma() { return sigma_; }
  double sigma() const { return sigma_; }
  double condition() const { return condition_; }
  /// The standard deviation along axis j.
  double deviation(std::size_t j) const {
    return sigma_ * stretch_[j] * std::sqrt(separable_ ? variance_[j] : covariance_(j, j));
  }
  /// The length of the mean's evolution path along axis j.
  double drift(std::size_t j) const { return sigma_ * stretch_[j] * std::fabs(path_c_[j]); }

  /// The sample that belongs to the standard normal numbers `z`.
  void sample(const double* z, double* x) const {
    const std::size_t n = size();
    if (separable_) {
      for (std::size_t j = 0; j < n; ++j) x[j] = mean_[j] + sigma_ * stretch_[j] * scale_[j] * z[j];
      return;
    }
    std::fill_n(x, n, 0.0);
    for (std::size_t k = 0; k < n; ++k) axpy(scale_[k] * z[k], axes_.row(k), x, n);
    for (std::size_t j = 0; j < n; ++j) x[j] = mean_[j] + sigma_ * stretch_[j] * x[j];
  }

  /// Makes one generation. If rounding or infinities would give an invalid result, changes nothing and returns false.
  bool update(std::span<const CmaSample> samples) {
    const std::size_t n = size();
    const double dimension = static_cast<double>(n);
    const double chi = std::sqrt(dimension) * (1 - 1 / (4 * dimension) + 1 / (21 * dimension * dimension));
    Matrix ys(samples.size(), n), zs(samples.size(), n);
    std::vector<double> weights, step(n, 0), shift(n, 0), z(n, 0);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const CmaSample& s = samples[i];
      double* y = ys.row(i);
      for (std::size_t j = 0; j < n; ++j) y[j] = (s.x[j] - mean_[j]) / (sigma_ * stretch_[j]);
      whiten(y, zs.row(i));
      double length = std::sqrt(dot(zs.row(i), zs.row(i), n));
      if (!std::isfinite(length)) return false;
      // Bounds the influence of solutions from elsewhere (Hansen, "Injecting External Solutions Into CMA-ES", 2011).
      const double most = std::sqrt(dimension) + 2 * dimension / (dimension + 2);
      if (s.foreign && length > most) {
        for (std::size_t j = 0; j < n; ++j) {
          y[j] *= most / length;
          zs.row(i)[j] *= most / length;
        }
        length = most;
      }
      if (s.weight > 0) {
        axpy(s.weight, y, step.data(), n);
        axpy(s.weight, zs.row(i), z.data(), n);
        for (std::size_t j = 0; j < n; ++j)
          if (s.counts == nullptr || s.counts[j]) shift[j] += s.weight * y[j];
      }
      weights.push_back(s.weight >= 0 ? s.weight : s.weight * dimension / std::max(length * length, 1e-12));
    }
    for (std::size_t j = 0; j < n; ++j) mean_[j] += sigma_ * stretch_[j] * shift[j];

    ++generations_;
    const double push = std::sqrt(w_.cs * (2 - w_.cs) * w_.mueff);
    unwhiten(z);
    for (std::size_t j = 0; j < n; ++j) path_s_[j] = (1 - w_.cs) * path_s_[j] + push * z[j];
    const double length = std::sqrt(dot(path_s_.data(), path_s_.data(), n));
    const double stationary = std::sqrt(1 - std::pow(1 - w_.cs, 2 * static_cast<double>(generations_)));
    const bool steady = length / stationary < (1.4 + 2 / (dimension + 1)) * chi;
    const double pull = steady ? std::sqrt(w_.cc * (2 - w_.cc) * w_.mueff) : 0;
    for (std::size_t j = 0; j < n; ++j) path_c_[j] = (1 - w_.cc) * path_c_[j] + pull * step[j];

    double sum = 0;
    for (const auto& s : samples) sum += s.weight;
    const double keep = 1 - w_.c1 - w_.cmu * sum + (steady ? 0 : w_.c1 * w_.cc * (2 - w_.cc));
    if (separable_) {
      for (std::size_t j = 0; j < n; ++j) {
        double v = keep * variance_[j] + w_.c1 * path_c_[j] * path_c_[j];
        for (std::size_t i = 0; i < samples.size(); ++i) v += w_.cmu * weights[i] * ys(i, j) * ys(i, j);
        variance_[j] = std::max(v, 1e-20);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        double* row = covariance_.row(i);
        for (std::size_t j = 0; j <= i; ++j) row[j] *= keep;
        axpy(w_.c1 * path_c_[i], path_c_.data(), row, i + 1);
        for (std::size_t s = 0; s < samples.size(); ++s) axpy(w_.cmu * weights[s] * ys(s, i), ys.row(s), row, i + 1);
        for (std::size_t j = 0; j < i; ++j) covariance_(j, i) = row[j];
      }
    }
    sigma_ *= std::exp(std::min(1.0, w_.cs / w_.damping * (length / chi - 1)));
    refresh();
    return true;
  }

 private:
  // z := C^-1/2 y in the basis of the axes.
  void whiten(const double* y, double* z) const {
    const std::size_t n = size();
    for (std::size_t k = 0; k < n; ++k) z[k] = separable_ ? y[k] / scale_[k] : dot(axes_.row(k), y, n) / scale_[k];
  }
  // Transforms from the basis of the axes back to the coordinates.
  void unwhiten(std::vector<double>& z) const {
    if (separable_) return;
    std::vector<double> out(z.size(), 0);
    for (std::size_t k = 0; k < z.size(); ++k) axpy(z[k], axes_.row(k), out.data(), z.size());
    z = std::move(out);
  }
  // Computes the square root of C. In many dimensions not after each generation, as it changes slowly there.
  void refresh() {
    const std::size_t n = size();
    if (separable_) {
      for (std::size_t j = 0; j < n; ++j) scale_[j] = std::sqrt(variance_[j]);
      const auto [low, high] = std::minmax_element(variance_.begin(), variance_.end());
      condition_ = n == 0 ? 1 : *high / *low;
      return;
    }
    if (static_cast<double>(++since_axes_) < 1 / ((w_.c1 + w_.cmu) * static_cast<double>(n) * 10)) return;
    since_axes_ = 0;
    const auto eigen = symmetric_eigen(covariance_);
    if (!eigen || !(eigen->values.front() > 0)) {
      covariance_ = axes_ = Matrix::identity(n);
      scale_.assign(n, 1);
      path_c_.assign(n, 0);
      condition_ = 1;
      return;
    }
    axes_ = eigen->vectors;
    for (std::size_t k = 0; k < n; ++k) scale_[k] = std::sqrt(eigen->values[k]);
    condition_ = eigen->values.back() / eigen->values.front();
  }

  std::vector<double> mean_, path_c_, path_s_, stretch_;
  std::vector<double> scale_;     // of the axes: square roots of eigenvalues, or of variances
  std::vector<double> variance_;  // separable: C's diagonal
  Matrix covariance_, axes_;      // full: C and its eigenvectors, as rows
  CmaWeights w_;
  double sigma_ = 0.2;
  double condition_ = 1;
  std::size_t generations_ = 0, since_axes_ = 0;
  bool separable_ = false;
};

}  // namespace hypertune::inline v0::detail
