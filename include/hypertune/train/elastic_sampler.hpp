// ElasticSampler: assigns samples to ranks, each once per epoch, however the group changes in between.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/detail/permutation.hpp>
#include <hypertune/train/sharding.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0 {

struct ElasticSamplerOptions {
  std::uint64_t seed = 0;  ///< the same on all ranks
  bool shuffle = true;     ///< a different order in each epoch, determined by seed and epoch; false: 0, 1, 2, ...
};

/// Gives each rank its share of one global batch after another. Its state is the epoch and the number of its samples
/// that were given out, and is equal on all ranks: commit and restore it with the model. Then each sample is visited
/// once per epoch, as counted by the commits, without replacement and without padding, however the number of ranks
/// changes (like Elastic Horovod's ElasticSampler, which pads, and AdaptDL's data loader). The order is a Permutation,
/// which needs no memory, however many samples there are.
///
/// All ranks make the same calls, except for their own rank. Not thread-safe; each rank has its own.
class ElasticSampler {
 public:
  /// Trivially copyable, equal on all ranks. It is committed, restored, and sent to ranks that join.
  struct State {
    std::uint64_t epoch = 0;
    std::uint64_t processed = 0;  ///< samples of this epoch that were given out, to all ranks together
    friend bool operator==(const State&, const State&) = default;
  };

  explicit ElasticSampler(std::uint64_t samples, ElasticSamplerOptions options = {})
      : samples_(samples), options_(options), order_(order_of(0)) {}

  /// This rank's share of the next batch of `global_batch` samples over all ranks, or of all remaining samples if there
  /// are fewer. Shares are even_share()s of the batch, so that one may be empty. The state advances by the whole batch.
  /// Returns nothing when the epoch is done. Error of kind `usage` if `global_batch` is 0 or `rank` is not below
  /// `size`.
  std::vector<std::uint64_t> next(std::uint64_t global_batch, int rank, int size) {
    if (global_batch == 0) fail(Errc::usage, "a batch of no samples");
    const std::uint64_t batch = std::min(global_batch, remaining());
    const Share share = even_share(batch, rank, size);
    std::vector<std::uint64_t> taken;
    taken.reserve(share.size());
    for (std::uint64_t i = share.begin; i < share.end; ++i) taken.push_back(sample(state_.processed + i));
    state_.processed += batch;
    return taken;
  }
  /// The same with a global batch of `worker_batch` samples per rank, which grows and shrinks with the group (see
  /// LearningRate for adapting the learning rate). Near the end of an epoch the remaining samples are shared evenly.
  std::vector<std::uint64_t> next_per_worker(std::uint64_t worker_batch, int rank, int size) {
    if (size < 1) fail(Errc::usage, "a batch for {} workers", size);
    const auto ranks = static_cast<std::uint64_t>(size);
    const bool all = worker_batch > samples_ / ranks;  // more than there are samples; the product could overflow
    return next(all ? std::max<std::uint64_t>(samples_, 1) : worker_batch * ranks, rank, size);
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t epoch() const { return state_.epoch; }
  std::uint64_t processed() const { return state_.processed; }
  std::uint64_t remaining() const { return samples_ - state_.processed; }
  bool done() const { return remaining() == 0; }  ///< with this epoch

  /// The sample at this place of the current epoch's order.
  std::uint64_t sample(std::uint64_t place) const { return options_.shuffle ? order_.at(place) : place; }

  /// Begins the next epoch; the remaining samples of this one are skipped.
  void next_epoch() { restore({state_.epoch + 1, 0}); }

  const State& state() const { return state_; }
  /// Continues from a state. Error of kind `usage`, with nothing changed, if it has more samples than there are.
  void restore(const State& state) {
    if (state.processed > samples_)
      fail(Errc::usage, "{} samples of an epoch of {} cannot have been processed: is it another data set?",
           state.processed, samples_);
    if (state.epoch != state_.epoch) order_ = order_of(state.epoch);
    state_ = state;
  }

 private:
  Permutation order_of(std::uint64_t epoch) const {
    return {samples_, detail::mixed_in(detail::mixed_in(0, options_.seed), epoch)};
  }

  std::uint64_t samples_;
  ElasticSamplerOptions options_;
  State state_;
  Permutation order_;
};

}  // namespace hypertune::inline v0
