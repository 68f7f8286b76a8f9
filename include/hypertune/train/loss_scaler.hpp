// LossScaler: the factor for a loss that keeps 16-bit gradients from becoming zero.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/loss_scale.hpp>

#include <cmath>

namespace hypertune::inline v0 {

/// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", ICLR 2018). The loss is multiplied by
/// scale(), and so are the gradients. If one overflows, the step is skipped and the scale is reduced; after many good
/// steps it is increased.
///
///     backward(loss * scaler.scale());
///     if (scaler.update(gradients.reduce(samples).finite())) optimiser.step(1 / scale used);
///
/// The mean of all gradients is equal on all ranks, so that all skip the same steps and have the same scales without a
/// collective. With powers of two as factors, scaling changes no bit of values that do not overflow. The state is
/// committed with the model. Not thread-safe.
class LossScaler {
 public:
  using State = LossScale::State;

  /// Error of kind `usage` for options out of range.
  explicit LossScaler(const LossScalerOptions& options = {}) : scale_(options) {
    if (!(options.growth > 1) || !std::isfinite(options.growth) || !(options.backoff > 0) || !(options.backoff < 1) ||
        options.interval < 1)
      fail(Errc::usage, "loss scaling needs growth > 1, 0 < backoff < 1, interval >= 1: not {}, {}, {}", options.growth,
           options.backoff, options.interval);
    if (!(options.min > 0) || !(options.min <= options.initial) || !(options.initial <= options.max) ||
        !std::isfinite(options.max))
      fail(Errc::usage, "loss scaling needs 0 < min <= initial <= max: not {}, {}, {}", options.min, options.initial,
           options.max);
  }

  double scale() const { return scale_.scale(); }

  /// Called after a step's gradients were reduced. `finite`: whether they were finite. Returns it: whether to take the
  /// step. After that, scale() is the one of the next step.
  bool update(bool finite) { return scale_.update(finite); }

  const State& state() const { return scale_.state(); }
  /// Error of kind `usage`, with nothing changed, if the scale is not within the bounds.
  void restore(const State& state) {
    if (!scale_.restore(state))
      fail(Errc::usage, "a loss scale of {} is not within {} and {}", state.scale, scale_.options().min,
           scale_.options().max);
  }

 private:
  LossScale scale_;
};

}  // namespace hypertune::inline v0
