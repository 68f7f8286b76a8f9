// LearningRate: how a learning rate follows the batch as workers come and go.
#pragma once

#include <hypertune/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hypertune::inline v0 {

/// By what a learning rate is multiplied where the global batch is k times as large as the one it was chosen for.
enum class BatchRule : std::uint8_t {
  none,         ///< 1: the global batch is fixed, or the optimiser does not mind
  linear,       ///< k: SGD (Goyal et al., "Accurate, Large Minibatch SGD", 2017), up to some batch only
  square_root,  ///< sqrt(k): keeps the variance of the steps (Krizhevsky, "One weird trick for parallelizing
                ///< convolutional neural networks", 2014), and the usual choice with Adam
};

/// Error of kind `usage` for batches that are not positive.
inline double batch_factor(BatchRule rule, double base_batch, double batch) {
  if (!(base_batch > 0) || !(batch > 0) || !std::isfinite(base_batch) || !std::isfinite(batch))
    fail(Errc::usage, "a learning rate for a batch of {}, chosen for one of {}", batch, base_batch);
  const double k = batch / base_batch;
  switch (rule) {
    case BatchRule::linear: return k;
    case BatchRule::square_root: return std::sqrt(k);
    case BatchRule::none: break;
  }
  return 1;
}

struct LearningRateOptions {
  double rate = 0.1;  ///< > 0: the one that is right for `batch`
  double batch = 1;   ///< > 0: samples of a step of all workers together; or workers, if that is what at() is given
  BatchRule rule = BatchRule::linear;
  double warmup = 5;  ///< >= 0: how long a growing rate takes, in the unit of at()'s progress; epochs, as a rule
};

/// A learning rate that follows the global batch. Where the batch grows, and at the beginning, the rate comes to its
/// new value linearly over `warmup`: Goyal et al.'s gradual warmup, which begins with the rate of the base batch, and
/// which Lin et al. ("Dynamic Mini-batch SGD for Elastic Distributed Training", 2019) found elastic training to need
/// after each change, too, as the momentum is still that of the other batch. Where the batch shrinks, the rate follows
/// at once, as the steps become noisier at once.
///
/// The state is the same on all ranks if they make the same calls; it is committed with the model. What else changes
/// the rate, as decay, multiplies what at() returns. Not thread-safe.
class LearningRate {
 public:
  /// Trivially copyable. Factors by which the base rate is multiplied.
  struct State {
    double from = 1, to = 1;
    double since = 0;  ///< progress at which the factor began to go from one to the other
    friend bool operator==(const State&, const State&) = default;
  };

  /// Error of kind `usage` for options out of their ranges.
  explicit LearningRate(const LearningRateOptions& options) : options_(options) {
    batch_factor(options.rule, options.batch, 1);
    if (!(options.rate > 0) || !(options.warmup >= 0))
      fail(Errc::usage, "a learning rate of {} with a warmup of {}", options.rate, options.warmup);
  }

  /// The rate for a step. `batch`: of all workers together, as it is meant to be; not the shorter one at the end of an
  /// epoch. `progress`: since the beginning of the training, never less than before but for a restored state.
  double at(double batch, double progress) {
    const double target = batch_factor(options_.rule, options_.batch, batch);
    if (target != state_.to) {
      const double now = factor(progress);
      state_ = {std::min(now, target), target, progress};
    }
    return options_.rate * factor(progress);
  }

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  double factor(double progress) const {
    const double passed = progress - state_.since;
    if (!(passed < options_.warmup)) return state_.to;
    return state_.from + (state_.to - state_.from) * std::max(passed, 0.0) / options_.warmup;
  }

  LearningRateOptions options_;
  State state_;
};

}  // namespace hypertune::inline v0
