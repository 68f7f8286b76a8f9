// GradientNoise: estimates the noise of gradients, which tells what a larger batch gains.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/detail/reduced_gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hypertune::inline v0 {

struct GradientNoiseOptions {
  double smoothing = 0.99;  ///< in [0, 1): the weight of earlier steps against one new step
};

/// Estimates the gradient noise scale (McCandlish et al., "An Empirical Model of Large-Batch Training", 2018) from what
/// DataParallel with options.measure_noise returns: the squared norms of the parts' gradients, and of their mean.
///
/// A mean of n samples has the expected squared norm G + S/n, where G is the squared norm of the true gradient and S
/// the trace of the samples' covariance. So the squared norms of R parts with N samples in total, weighted by samples,
/// have the mean G + S*R/N, and the mean of all has G + S/N: two equations, for parts of any sizes. The resulting
/// estimates of G and S are unbiased and noisy. Both are smoothed, corrected for the start at zero, and only then
/// divided.
///
/// A single part gives no information: a single worker has to accumulate over two passes or more. Equal on all ranks
/// without a collective; the state is committed with the model. Not thread-safe.
class GradientNoise {
 public:
  /// Trivially copyable.
  struct State {
    double square = 0;    ///< smoothed G
    double variance = 0;  ///< smoothed S
    double weight = 0;    ///< total weight of the steps in both
    friend bool operator==(const State&, const State&) = default;
  };

  explicit GradientNoise(GradientNoiseOptions options = {}) : options_(options) {
    if (!(options.smoothing >= 0) || !(options.smoothing < 1))
      fail(Errc::usage, "a smoothing of {} is not in [0, 1)", options.smoothing);
  }

  /// Adds a step. `loss_scale`: the factor by which its gradients are too large. Returns false and changes nothing if
  /// the step gives no information: fewer than two parts, not finite, or not measured.
  bool add(const ReducedGradients& step, double loss_scale = 1) {
    const double all = step.square / (loss_scale * loss_scale), parts = step.part_squares / (loss_scale * loss_scale);
    if (step.parts < 2 || !std::isfinite(all) || !std::isfinite(parts) || !(parts > 0)) return false;
    const auto samples = static_cast<double>(step.samples);
    const double variance = (parts - all) * samples / (step.parts - 1);
    const double fresh = 1 - options_.smoothing;
    state_.square = options_.smoothing * state_.square + fresh * (all - variance / samples);
    state_.variance = options_.smoothing * state_.variance + fresh * variance;
    state_.weight = options_.smoothing * state_.weight + fresh;
    return true;
  }

  bool known() const { return state_.weight > 0; }
  /// The estimates of G and S; 0 if they are negative or nothing is known.
  double square() const { return known() ? std::max(state_.square / state_.weight, 0.0) : 0; }
  double variance() const { return known() ? std::max(state_.variance / state_.weight, 0.0) : 0; }
  /// S/G in samples: the batch size at which noise and gradient are equally large. For smaller batches, doubling the
  /// batch saves nearly half of the steps; for much larger ones almost none. Infinite if G is 0; NaN if nothing is
  /// known.
  double scale() const { return known() ? variance() / square() : std::numeric_limits<double>::quiet_NaN(); }

  /// AdaScale's gain (Johnson et al., "AdaScale SGD: A User-Friendly Algorithm for Distributed Training", ICML 2020):
  /// the number of steps of `base_batch` that a step of `batch` samples is worth, between 1 and batch / base_batch for
  /// larger batches. The learning rate is multiplied by it, and a schedule counts gains instead of steps. 1 if nothing
  /// is known. Error of kind `usage` for batches that are not positive.
  double gain(double base_batch, double batch) const {
    if (!(base_batch > 0) || !(batch > 0))
      fail(Errc::usage, "the gain of a batch of {} over one of {}", batch, base_batch);
    const double here = variance() / batch + square();
    return here > 0 ? (variance() / base_batch + square()) / here : 1;
  }

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  GradientNoiseOptions options_;
  State state_;
};

}  // namespace hypertune::inline v0
