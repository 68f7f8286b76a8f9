// LossScaler: by what a loss is multiplied so that 16-bit gradients do not become zero.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/loss_scale.hpp>

#include <cmath>

namespace hypertune::inline v0 {

/// Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", ICLR 2018): the loss is multiplied by
/// scale(), and so are the gradients; where one overflows, the step is left out and the scale becomes smaller; after
/// many good steps it becomes larger.
///
///     backward(loss * scaler.scale());
///     if (scaler.update(gradients.reduce(samples).finite())) optimiser.step(1 / scale used);
///
/// The mean of all gradients is the same on all ranks, so all leave out the same steps, and scales stay the same
/// without a collective. With powers of two as factors, scaling changes no bit of what does not overflow. Its state is
/// committed with the model. Not thread-safe.
class LossScaler {
 public:
  using State = LossScale::State;

  /// Error of kind `usage` for options out of their ranges.
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

  /// After a step's gradients were reduced: whether they were finite. Returns that, which is whether the step is to be
  /// taken; scale() is of the next step then.
  bool update(bool finite) { return scale_.update(finite); }

  const State& state() const { return scale_.state(); }
  /// Error of kind `usage`, with nothing changed, for a scale that is not within the bounds.
  void restore(const State& state) {
    if (!scale_.restore(state))
      fail(Errc::usage, "a loss scale of {} is not within {} and {}", state.scale, scale_.options().min,
           scale_.options().max);
  }

 private:
  LossScale scale_;
};

}  // namespace hypertune::inline v0
