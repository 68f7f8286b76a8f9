// UserPrior: where the user expects the best value of one parameter.
#pragma once

#include <hypertune/space/detail/domain_prior.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A density over the quantiles [0, 1] of a domain, relative to the uniform one: a truncated normal around the value
/// believed to be good, or a probability for each option. Empty: no belief, uniform.
class UserPrior {
 public:
  UserPrior() = default;
  /// Around the quantile `center`; `spread` is the standard deviation before truncation.
  UserPrior(double center, double spread);
  /// A probability for each option; they add up to 1.
  explicit UserPrior(std::vector<double> weights);

  bool empty() const { return spread_ == 0 && weights_.empty(); }
  /// The quantile believed to be the best.
  double center() const;

  /// The logarithm of the mean density over the quantiles from `low` to `high`, which may be equal.
  double log_density(double low, double high) const;

  /// The quantile of the domain at the probability u of this prior, in [0, 1].
  double quantile(double u) const;

 private:
  double center_ = 0, spread_ = 0;
  double low_ = 0, high_ = 1;  // cumulative probabilities of the normal at the ends
  std::vector<double> weights_;
};

}  // namespace hypertune::inline v0::detail
