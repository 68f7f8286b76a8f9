// TimeVaryingBandit: models the gain of an interval of training over configurations and time.
#pragma once

#include <hypertune/detail/linear.hpp>

#include <cmath>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail {

/// How much a population's losses fell in an interval, as a function of the configuration and of time: a Gaussian
/// process with the kernel exp(-|x - x'|^2 / 2 l^2) (1 - forgetting)^(|t - t'| / 2) of Bogunovic et al. (2016).
class TimeVaryingBandit {
 public:
  struct Observation {
    std::vector<double> x;  // in the unit cube
    double time = 0;        // in intervals
    double gain = 0;
  };

  /// Chooses length, forgetting and noise by the marginal likelihood on a grid. `observations`: 2 or more.
  explicit TimeVaryingBandit(std::vector<Observation> observations);

  bool sound() const { return factor_.has_value(); }

  /// Adds a member that trains at `x` now. Its gain is unknown, but it lowers the variance around it (the batch of
  /// GP-BUCB: variances shrink, means stay).
  void pending(const std::vector<double>& x, double time);

  /// The upper confidence bound of the gain at `x`: mean + width * standard deviation.
  double bound(const std::vector<double>& x, double time, double width) const;

 private:
  struct Kernel {
    double length, forgetting, noise;
  };
  static double square_distance(const Observation& a, const Observation& b);
  static double covariance(const Kernel& kernel, double square, double gap) {
    return std::exp(-square / (2 * kernel.length * kernel.length) + std::log1p(-kernel.forgetting) * gap / 2);
  }
  std::vector<double> covariances(const Observation& o) const;
  static std::optional<Cholesky> factored(const Kernel& kernel, const Matrix& squares, const Matrix& gaps);

  std::vector<Observation> seen_;
  std::vector<double> gains_, weights_;
  Kernel kernel_{0.25, 0, 0.05};
  std::optional<Cholesky> factor_;
};

}  // namespace hypertune::inline v0::detail
