// LossScaler: by what a loss is multiplied so that 16-bit gradients do not become zero.
#pragma once

#include <hypertune/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hypertune::inline v0 {

struct LossScalerOptions {
  double initial = 65536;          ///< 2^16
  double growth = 2;               ///< > 1: the factor after `interval` good steps
  double backoff = 0.5;            ///< in (0, 1): the factor after a step that overflowed
  std::uint32_t interval = 2000;   ///< >= 1: good steps in a row until the scale grows
  double min = 1, max = 16777216;  ///< bounds of the scale, 0 < min <= initial <= max; 2^24
};

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
  /// Trivially copyable, the same on all ranks.
  struct State {
    double scale = 0;
    std::uint32_t good = 0;  ///< steps since the scale changed, or since one overflowed
    friend bool operator==(const State&, const State&) = default;
  };

  /// Error of kind `usage` for options out of their ranges.
  explicit LossScaler(const LossScalerOptions& options = {}) : options_(options), state_{options.initial, 0} {
    if (!(options.growth > 1) || !std::isfinite(options.growth) || !(options.backoff > 0) || !(options.backoff < 1) ||
        options.interval < 1)
      fail(Errc::usage, "loss scaling needs growth > 1, 0 < backoff < 1, interval >= 1: not {}, {}, {}", options.growth,
           options.backoff, options.interval);
    if (!(options.min > 0) || !(options.min <= options.initial) || !(options.initial <= options.max) ||
        !std::isfinite(options.max))
      fail(Errc::usage, "loss scaling needs 0 < min <= initial <= max: not {}, {}, {}", options.min, options.initial,
           options.max);
  }

  double scale() const { return state_.scale; }

  /// After a step's gradients were reduced: whether they were finite. Returns that, which is whether the step is to be
  /// taken; scale() is of the next step then.
  bool update(bool finite) {
    if (!finite)
      state_ = {std::max(state_.scale * options_.backoff, options_.min), 0};
    else if (++state_.good >= options_.interval)
      state_ = {std::min(state_.scale * options_.growth, options_.max), 0};
    return finite;
  }

  const State& state() const { return state_; }
  /// Error of kind `usage`, with nothing changed, for a scale that is not within the bounds.
  void restore(const State& state) {
    if (!(state.scale >= options_.min && state.scale <= options_.max))
      fail(Errc::usage, "a loss scale of {} is not within {} and {}", state.scale, options_.min, options_.max);
    state_ = state;
  }

 private:
  LossScalerOptions options_;
  State state_;
};

}  // namespace hypertune::inline v0
