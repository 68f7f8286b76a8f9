// A distribution over the options of a category, learnt from ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::detail {

/// A categorical distribution that follows the natural gradient of the weighted ranks: p += rate * sum of w_i (e_i - p)
/// (as in PBIL and, with one rate for all, CatCMA: Hamano et al., "CatCMA: Stochastic Optimization for Mixed-Category
/// Problems", GECCO 2024). The probability of an option never falls below a margin, so that none is lost by chance.
class CategoryDistribution {
 public:
  CategoryDistribution() = default;
  CategoryDistribution(std::size_t options, double margin)
      : probability_(options, 1 / static_cast<double>(options)),
        margin_(std::min(margin, 0.5 / static_cast<double>(options))) {}

  /// The option at the quantile u.
  std::size_t option(double u) const {
    for (std::size_t k = 0; k + 1 < probability_.size(); ++k) {
      u -= probability_[k];
      if (u < 0) return k;
    }
    return probability_.size() - 1;
  }
  double probability(std::size_t k) const { return probability_[k]; }
  std::size_t size() const { return probability_.size(); }

  /// `gain[k]`: the sum of the weights of the samples that had option k.
  void update(const std::vector<double>& gain, double rate) {
    double total = 0;
    for (const double g : gain) total += g;
    double sum = 0;
    for (std::size_t k = 0; k < probability_.size(); ++k) {
      probability_[k] = std::max(margin_, probability_[k] + rate * (gain[k] - total * probability_[k]));
      sum += probability_[k];
    }
    // The probability that the margins added is taken from the others, in proportion to their excess over the margin.
    const double free = sum - margin_ * static_cast<double>(probability_.size());
    const double factor = (1 - margin_ * static_cast<double>(probability_.size())) / free;
    for (double& p : probability_) p = margin_ + (p - margin_) * factor;
  }

 private:
  std::vector<double> probability_;
  double margin_ = 0;
};

}  // namespace hypertune::inline v0::detail
