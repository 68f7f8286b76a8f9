// The user's prior on one parameter: definitions.
#pragma once

#include <hypertune/space/detail/user_prior.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

double UserPrior::center() const {
  if (weights_.empty()) return empty() ? 0.5 : center_;
  const auto best = std::max_element(weights_.begin(), weights_.end()) - weights_.begin();
  return (static_cast<double>(best) + 0.5) / static_cast<double>(weights_.size());
}

double UserPrior::log_density(double low, double high) const {
  if (empty()) return 0;
  if (!weights_.empty()) {
    const double n = static_cast<double>(weights_.size());
    const auto option = static_cast<std::size_t>(std::clamp((low + high) / 2 * n, 0.0, n - 1));
    return std::log(weights_[option] * n);
  }
  const double z = ((low + high) / 2 - center_) / spread_;
  const double at_middle = -0.5 * z * z - std::log(spread_ * (high_ - low_)) - 0.91893853320467274178;
  const double a = (low - center_) / spread_;
  const double b = (high - center_) / spread_;
  if (b - a < 1e-3) return at_middle;  // the middle is precise enough, and the difference below would cancel
  const double mass = a > 0 ? normal_cdf(-a) - normal_cdf(-b) : normal_cdf(b) - normal_cdf(a);
  if (!(mass > 0)) return at_middle;
  return std::log(mass / (high_ - low_) / (high - low));
}

double UserPrior::quantile(double u) const {
  if (empty()) return u;
  if (weights_.empty()) {
    const double p = std::lerp(low_, high_, u);
    return std::clamp(center_ + spread_ * normal_quantile(std::clamp(p, 0x1p-1000, 1 - 0x1p-53)), 0.0, 1.0);
  }
  const double n = static_cast<double>(weights_.size());
  double before = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (u < before + weights_[i] || i + 1 == weights_.size())
      return (static_cast<double>(i) + std::clamp((u - before) / weights_[i], 0.0, 0.999999)) / n;
    before += weights_[i];
  }
  return u;
}

UserPrior::UserPrior(double center, double spread)
    : center_(center), spread_(spread), low_(normal_cdf(-center / spread)), high_(normal_cdf((1 - center) / spread)) {}

UserPrior::UserPrior(std::vector<double> weights) : weights_(std::move(weights)) {}

}  // namespace hypertune::inline v0::detail
