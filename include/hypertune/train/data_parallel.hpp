// DataParallel: the gradients of all workers of a trial become their mean, while the backward pass goes on.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/communicator.hpp>
#include <hypertune/train/gradient_buckets.hpp>
#include <hypertune/train/gradient_memory.hpp>
#include <hypertune/train/reduced_gradients.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The same on all ranks, but for `signal`.
struct DataParallelOptions {
  std::size_t bucket_bytes = 25 << 20;          ///< at most so much is reduced by one collective
  std::size_t first_bucket_bytes = 1 << 20;     ///< of the first one, which is to begin early in the backward pass
  std::size_t in_place_bytes = 4 << 20;         ///< a gradient of so much is reduced alone where it is, without a copy
  std::function<bool()> signal = {};            ///< asked in each reduce(): see ReducedGradients::signalled
  bool measure_noise = false;                   ///< ReducedGradients::part_squares: another pass over the gradients
  std::shared_ptr<GradientMemory> memory = {};  ///< where the gradients are; null: the processor's
};

/// Makes the gradients of a rank those of all: their mean over all samples, each rank's weighted by how many samples it
/// has seen, equal to the bit on all ranks.
///
///     DataParallel gradients(communicator);
///     for (auto& layer : model) gradients.add(std::span(layer.gradient));   // in the order of the forward pass
///     gradients.broadcast(parameters);                                      // all begin with those of rank 0
///     ...
///     gradients.begin(batch.size());           // may be left out, with ready()
///     ... gradients.ready(index);              // in the backward pass, as each gradient is done
///     gradients.reduce(batch.size());          // now each rank has the mean
///
/// Gradients are reduced in buckets, in the same order on all ranks, while the backward pass goes on (as PyTorch's DDP:
/// Li et al., VLDB 2020). Counts of samples and signals travel in the last bucket: a step has no other collective, but
/// the first one of a generation, which compares what the ranks have registered, and one where all gradients are
/// reduced in place.
///
/// A rank multiplies its gradients by its samples over a power of two, at least the number of all samples of any step
/// of the generation so far, and divides by the rest afterwards. So 16-bit gradients do not overflow in the sum, unless
/// a step has several times more samples than all before it; and what that power was changes no bit of a mean, unless
/// numbers as small as subnormal ones are lost.
///
/// All ranks register the same gradients and make the same calls, except that a rank with fewer samples may make fewer
/// accumulate() and no ready(). ready() may be called by any threads, the others by one at a time. A GroupError of a
/// collective comes out of the call that waits for it, and of all that follow until rebind(); the gradients are of no
/// use then. Gradients belong to this object from their ready() to the end of reduce().
class DataParallel {
 public:
  explicit DataParallel(Communicator communicator, DataParallelOptions options = {});
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  ~DataParallel() { settle(); }

  /// Registers a gradient, which stays where it is, and returns its index: 0, 1, ... Not between begin() and reduce().
  template <FloatElement T>
  std::size_t add(std::span<T> gradient) {
    return add_view(gradient);
  }
  template <FloatElement T>
  std::size_t add(std::vector<T>& gradient) {
    return add_view(std::span<T>(gradient));
  }
  /// The gradient is somewhere else now. Error of kind `usage` if its count or type is another.
  void move(std::size_t index, TensorView gradient);
  std::size_t count() const { return gradients_.size(); }

  /// Parameters, or other state, of rank 0 to all others.
  void broadcast(std::span<const TensorView> parameters, int root = 0);
  template <Element T>
  void broadcast(std::span<T> parameters, int root = 0) {
    const std::array<TensorView, 1> one = {TensorView(parameters)};
    broadcast(std::span<const TensorView>(one), root);
  }

  /// Before a backward pass that is to be reduced as it goes on: the gradients will be the mean of `samples` samples.
  /// 0: they are ignored, NaNs and all.
  void begin(std::int64_t samples);
  /// The gradient is final: called once for each in a step, best in the reverse order of registration. Ignored without
  /// begin(), so that a framework's hooks may call it in passes that accumulate, too.
  void ready(std::size_t index);
  /// After a backward pass whose gradients are not yet to be reduced: they, the mean of `samples` samples, are added to
  /// what was accumulated, and may be written over. The sum is kept in the gradients' type. The next reduce() has the
  /// mean of all. Gradients reduced in place cost as much memory again, from the first call on. (Passes of equally many
  /// samples that add to the gradients by themselves do without: divide each loss by their number, and tell reduce()
  /// the samples of all.)
  void accumulate(std::int64_t samples);
  /// Drops what was accumulated, on all ranks: as where their state is restored. Not between begin() and reduce().
  void discard();
  /// Waits until the gradients are the mean over all samples of all ranks. `samples` is what begin() was told, if it
  /// was called. With an exception of options.signal nothing is done, and reduce() can be called again.
  const ReducedGradients& reduce(std::int64_t samples);
  /// Of the last reduce().
  const ReducedGradients& reduced() const { return reduced_; }
  bool signalled() const { return reduced_.signalled; }

  /// Of all registered gradients as they are now; the same on all ranks after reduce(). Infinite or NaN if one is.
  double norm() const;
  /// Makes the norm of all gradients together `max_norm` where it is more (Pascanu et al., "On the difficulty of
  /// training recurrent neural networks", ICML 2013). Returns the norm before. With an infinite or NaN norm nothing is
  /// changed: the step is to be left out. `loss_scale`: the gradients are so many times too large, and stay it; the
  /// norms are meant, and returned, without it.
  double clip_by_global_norm(double max_norm, double loss_scale = 1);
  /// Divides all gradients by the loss scale. Small 16-bit gradients become zero by this, which is what the scale is
  /// there to prevent: there let the optimiser divide, in float.
  void unscale(double loss_scale);

  /// Goes on with the ranks of a new generation. What was begun or accumulated is dropped; collectives that are under
  /// way are aborted.
  void rebind(Communicator communicator);
  const Communicator& communicator() const { return communicator_; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }

 private:
  /// What the communicator's thread and the caller's share.
  struct Flight {
    std::mutex mutex;
    std::condition_variable landed;
    std::size_t outstanding = 0;
    std::exception_ptr error;
  };
  std::size_t add_view(TensorView gradient);
  void check_idle(const char* call) const;
  void check_step(std::int64_t samples);
  void plan();
  void agree(std::int64_t samples);
  void accumulate_by(double unit);
  std::uint64_t registration() const;
  bool alone() const { return communicator_.size() == 1 && !accumulated_; }
  static void* offset_in(void* memory, std::size_t elements, ElementType type) {
    return static_cast<std::byte*>(memory) + elements * size_of(type);
  }
  void for_each_type(const auto& body) const;
  void launch_ready();
  void launch(const detail::GradientBucket& bucket, void* memory);
  void launch_tail(bool signal);
  void start(void* data, std::size_t count, ElementType type);
  std::exception_ptr wait();
  void settle() noexcept;
  void take_mean();
  void take_alone(bool signal);
  void end_step();

  Communicator communicator_;
  DataParallelOptions options_;
  std::vector<TensorView> gradients_;
  ReducedGradients reduced_;

  // Of a generation, or until another gradient is registered:
  bool planned_ = false, agreed_ = false;
  std::vector<detail::GradientBucket> buckets_;
  std::vector<std::shared_ptr<void>> memory_;  ///< by bucket; null of those in place, until they accumulate
  std::vector<std::size_t> bucket_of_;         ///< by gradient
  double unit_ = 1;                            ///< a power of two: gradients are summed in samples over it
  std::exception_ptr broken_;                  ///< what has ended this generation

  // Of a step:
  std::mutex step_;  ///< ready() comes from any threads
  bool begun_ = false, accumulated_ = false;
  double accumulated_unit_ = 1;                ///< what is accumulated is in samples over this power of two
  std::int64_t samples_ = 0;                   ///< of the backward pass that is reduced
  detail::GradientTail told_ = {};             ///< this rank's
  std::vector<bool> ready_;                    ///< by gradient
  std::vector<std::size_t> awaited_;           ///< by bucket: gradients that are not ready
  std::size_t next_ = 0;                       ///< bucket to be launched
  mutable std::vector<GradientPiece> pieces_;  ///< of a call
  Flight flight_;
};

}  // namespace hypertune::inline v0

#include <hypertune/train/impl/data_parallel.hpp>
