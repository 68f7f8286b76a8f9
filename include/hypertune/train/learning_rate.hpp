// LearningRate: adapts a learning rate to the batch size as workers come and go.
#pragma once

#include <hypertune/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hypertune::inline v0 {

/// The factor for the learning rate if the global batch is k times as large as the one that the rate was chosen for.
enum class BatchRule : std::uint8_t {
  none,         ///< 1: for a fixed global batch, or an optimiser that does not depend on it
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
  double rate = 0.1;  ///< > 0: the right rate for `batch`
  double batch = 1;   ///< > 0: samples per step over all workers; or workers, if at() is given those
  BatchRule rule = BatchRule::linear;
  double warmup = 5;  ///< >= 0: duration of an increase of the rate, in the unit of at()'s progress; usually epochs
};

/// A learning rate that follows the global batch. When the batch grows, and at the start, the rate increases linearly
/// to its new value over `warmup`. This is Goyal et al.'s gradual warmup, which starts with the rate of the base batch.
/// Lin et al. ("Dynamic Mini-batch SGD for Elastic Distributed Training", 2019) found that elastic training needs it
/// after each change, too, because the momentum still belongs to the old batch. When the batch shrinks, the rate
/// follows at once, as the steps become noisier at once.
///
/// The state is equal on all ranks if they make the same calls; it is committed with the model. Other changes of the
/// rate, such as decay, multiply the result of at(). Not thread-safe.
class LearningRate {
 public:
  /// Trivially copyable. `from` and `to` are factors for the base rate.
  struct State {
    double from = 1, to = 1;
    double since = 0;  ///< progress at which the factor began to change
    friend bool operator==(const State&, const State&) = default;
  };

  /// Error of kind `usage` for options out of range.
  explicit LearningRate(const LearningRateOptions& options) : options_(options) {
    batch_factor(options.rule, options.batch, 1);
    if (!(options.rate > 0) || !(options.warmup >= 0))
      fail(Errc::usage, "a learning rate of {} with a warmup of {}", options.rate, options.warmup);
  }

  /// The rate for a step. `batch`: the intended batch over all workers, not the shorter one at the end of an epoch.
  /// `progress`: since the start of training; never less than before, except after restore().
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
