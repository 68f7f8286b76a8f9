// LatencyModel: how long a batch takes, fitted while it serves.
#pragma once

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::serving {

/// A batch of x rows takes a + b x seconds (Symphony, arXiv 2308.07470, section 3). Least squares over recent batches: each
/// counts 2 % less with every batch after it. A value.
class LatencyModel {
 public:
  void add(double rows, double seconds) {
    if (weight_ > 0) {
      const double expected = mean(rows);
      // One that took much longer than expected was held up, and says little of the next ones, unless they do so, too.
      const double limit = 1.05 * expected + 3 * std::max(deviation_, 0.0);
      held_up_ = deviation_ >= 0 && seconds > limit ? held_up_ + 1 : 0;
      if (held_up_ == 1 || held_up_ == 2) seconds = limit;
      const double error = std::fabs(seconds - expected);
      deviation_ = deviation_ < 0 ? error : deviation_ + 0.1 * (error - deviation_);
    }
    for (double* sum : {&weight_, &x_, &y_, &xx_, &xy_}) *sum *= 0.98;
    weight_ += 1;
    x_ += rows;
    y_ += seconds;
    xx_ += rows * rows;
    xy_ += rows * seconds;
  }

  /// Whether anything was measured.
  bool known() const { return weight_ > 0; }

  /// The seconds that a batch is expected to take; 0 as long as nothing is known.
  double mean(double rows) const {
    if (!known()) return 0;
    const double mean_x = x_ / weight_, mean_y = y_ / weight_;
    const double variance = xx_ / weight_ - mean_x * mean_x;
    // All batches had about one size: what they took is split in the middle between the batch and its rows.
    if (variance < 1e-6 * mean_x * mean_x + 1e-12) return mean_y * (0.5 + 0.5 * rows / mean_x);
    const double slope = std::clamp((xy_ / weight_ - mean_x * mean_y) / variance, 0.0, mean_y / mean_x);
    return mean_y + slope * (rows - mean_x);
  }

  /// The seconds within which a batch is done, most of the time: the mean and two mean deviations.
  double bound(double rows) const { return mean(rows) + 2 * std::max(deviation_, 0.0); }

 private:
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
  double deviation_ = -1;  // mean absolute error of the mean; below 0: not known
  int held_up_ = 0;        // batches without another one between them
};

}  // namespace hypertune::inline v0::serving
