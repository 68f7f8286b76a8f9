// LossScale: the arithmetic of dynamic loss scaling, without checks. A plain header, for nvcc's front end too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0 {

struct LossScalerOptions {
  double initial = 65536;          ///< 2^16
  double growth = 2;               ///< > 1: the factor after `interval` good steps
  double backoff = 0.5;            ///< in (0, 1): the factor after a step that overflowed
  std::uint32_t interval = 2000;   ///< >= 1: number of successive good steps after which the scale grows
  double min = 1, max = 16777216;  ///< bounds of the scale, 0 < min <= initial <= max; 2^24
};

/// LossScaler without the checks of its options; for code compiled by nvcc, which cannot include the header of errors.
class LossScale {
 public:
  /// Trivially copyable, equal on all ranks.
  struct State {
    double scale = 0;
    std::uint32_t good = 0;  ///< steps since the scale changed or a step overflowed
    friend bool operator==(const State&, const State&) = default;
  };

  /// The options must be within their ranges.
  explicit LossScale(const LossScalerOptions& options = {}) : options_(options), state_{options.initial, 0} {}

  double scale() const { return state_.scale; }

  /// Called after a step's gradients were reduced. `finite`: whether they were finite. Returns it: whether to take the
  /// step. After that, scale() is the one of the next step.
  bool update(bool finite) {
    if (!finite)
      state_ = {std::max(state_.scale * options_.backoff, options_.min), 0};
    else if (++state_.good >= options_.interval)
      state_ = {std::min(state_.scale * options_.growth, options_.max), 0};
    return finite;
  }

  const LossScalerOptions& options() const { return options_; }
  const State& state() const { return state_; }
  /// Returns whether the state's scale is within the bounds. If not, nothing is changed.
  bool restore(const State& state) {
    if (!(state.scale >= options_.min && state.scale <= options_.max)) return false;
    state_ = state;
    return true;
  }

 private:
  LossScalerOptions options_;
  State state_;
};

}  // namespace hypertune::inline v0
