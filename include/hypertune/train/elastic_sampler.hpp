// ElasticSampler: which samples a rank trains on, each once an epoch whatever the group becomes in between.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/permutation.hpp>
#include <hypertune/train/sharding.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0 {

struct ElasticSamplerOptions {
  std::uint64_t seed = 0;  ///< the same on all ranks
  bool shuffle = true;     ///< another order in each epoch, a function of seed and epoch; false: 0, 1, 2, ...
};

/// Gives each rank its share of one global batch after another. Its state is the epoch and how many samples of it have
/// been given out, the same on all ranks: commit it with the model, restore it with the model, and each sample is
/// visited once an epoch as counted by what was committed, without replacement and without padding, whatever the
/// number of ranks does meanwhile (as Elastic Horovod's ElasticSampler, which pads, and AdaptDL's data loader). The
/// order is a Permutation: no memory, so 10^9 samples are as good as ten.
///
/// All ranks make the same calls, but for their own rank. Not thread-safe: one for each rank.
class ElasticSampler {
 public:
  /// Trivially copyable, the same on all ranks: what is committed, restored and sent to a rank that is new.
  struct State {
    std::uint64_t epoch = 0;
    std::uint64_t processed = 0;  ///< samples of this epoch that were given out, to all ranks together
    friend bool operator==(const State&, const State&) = default;
  };

  explicit ElasticSampler(std::uint64_t samples, ElasticSamplerOptions options = {})
      : samples_(samples), options_(options), order_(order_of(0)) {}

  /// This rank's share of the next batch of `global_batch` samples of all ranks together: as many as are left when they
  /// are fewer. Shares are even_share()s of it, so one may be empty. All ranks go on by the whole batch. Nothing once
  /// the epoch is done. Error of kind `usage` for a batch of none, or a rank that is not among `size`.
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
  /// The same with a global batch of `worker_batch` samples for each rank: it grows and shrinks with the group (see
  /// LearningRate for what then becomes of the learning rate). Near the end of an epoch what is left is shared evenly.
  std::vector<std::uint64_t> next_per_worker(std::uint64_t worker_batch, int rank, int size) {
    if (size < 1) fail(Errc::usage, "a batch for {} workers", size);
    const auto ranks = static_cast<std::uint64_t>(size);
    const bool all = worker_batch > samples_ / ranks;  // more would be given than there are, and the product overflow
    return next(all ? std::max<std::uint64_t>(samples_, 1) : worker_batch * ranks, rank, size);
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t epoch() const { return state_.epoch; }
  std::uint64_t processed() const { return state_.processed; }
  std::uint64_t remaining() const { return samples_ - state_.processed; }
  bool done() const { return remaining() == 0; }  ///< with this epoch

  /// The sample at this place of the current epoch's order.
  std::uint64_t sample(std::uint64_t place) const { return options_.shuffle ? order_.at(place) : place; }

  /// Begins the next epoch; what remains of this one is left out.
  void next_epoch() { restore({state_.epoch + 1, 0}); }

  const State& state() const { return state_; }
  /// Goes on from there. Error of kind `usage`, with nothing changed, for a state of more samples than there are.
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
