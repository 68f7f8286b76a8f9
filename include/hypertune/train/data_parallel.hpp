// DataParallel: averages the gradients of all workers of a trial while the backward pass is running.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/communicator.hpp>
#include <hypertune/train/detail/gradient_buckets.hpp>
#include <hypertune/train/detail/reduced_gradients.hpp>
#include <hypertune/train/gradient_memory.hpp>

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

/// Must be equal on all ranks, except `signal`.
struct DataParallelOptions {
  std::size_t bucket_bytes = 25 << 20;          ///< upper bound of what one collective reduces
  std::size_t first_bucket_bytes = 1 << 20;     ///< of the first bucket, which should start early in the backward pass
  std::size_t in_place_bytes = 4 << 20;         ///< a gradient of this size or more is reduced alone, in place
  std::function<bool()> signal = {};            ///< called in each reduce(): see ReducedGradients::signalled
  bool measure_noise = false;                   ///< ReducedGradients::part_squares: one more pass over the gradients
  std::shared_ptr<GradientMemory> memory = {};  ///< where the gradients are; null: in host memory
};

/// Replaces the gradients of each rank by their mean over the samples of all ranks. Each rank's gradients are weighted
/// by the number of its samples. The results are bitwise equal on all ranks.
///
///     DataParallel gradients(communicator);
///     for (auto& layer : model) gradients.add(std::span(layer.gradient));   // in the order of the forward pass
///     gradients.broadcast(parameters);                                      // all start with those of rank 0
///     ...
///     gradients.begin(batch.size());           // may be omitted, together with ready()
///     ... gradients.ready(index);              // in the backward pass, when each gradient is done
///     gradients.reduce(batch.size());          // now each rank has the mean
///
/// Gradients are reduced in buckets, in the same order on all ranks, during the backward pass (like PyTorch's DDP: Li
/// et al., VLDB 2020). Sample counts and signals travel in the last bucket, so that a step has no further collective.
/// The exceptions are the first step of a generation, which compares the gradients that the ranks have registered, and
/// a step in which all gradients are reduced in place.
///
/// A rank multiplies its gradients by its number of samples divided by a power of two, which is at least the number of
/// all samples of any step of the generation so far; the remaining factor is divided out afterwards. So 16-bit
/// gradients do not overflow in the sum, unless a step has several times more samples than all before it. The choice of
/// the power changes no bit of a mean, unless values become subnormal.
///
/// All ranks must register the same gradients and make the same calls, except that a rank with fewer samples may make
/// fewer calls of accumulate() and none of ready(). ready() may be called from any thread, the others from one thread
/// at a time. A GroupError of a collective is thrown by the call that waits for it and by all later ones until
/// rebind(); the gradients are invalid then. Gradients belong to this object from their ready() to the end of reduce().
class DataParallel {
 public:
  explicit DataParallel(Communicator communicator, DataParallelOptions options = {});
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  ~DataParallel() { abort_and_wait(); }

  /// Registers a gradient, which must stay in place, and returns its index: 0, 1, ... Not between begin() and reduce().
  template <FloatElement T>
  std::size_t add(std::span<T> gradient) {
    return add_view(gradient);
  }
  template <FloatElement T>
  std::size_t add(std::vector<T>& gradient) {
    return add_view(std::span<T>(gradient));
  }
  /// The gradient has moved. Error of kind `usage` if its count or type has changed.
  void move(std::size_t index, TensorView gradient);
  std::size_t count() const { return gradients_.size(); }

  /// Copies parameters, or other state, from rank 0 (or `root`) to all others.
  void broadcast(std::span<const TensorView> parameters, int root = 0);
  template <Element T>
  void broadcast(std::span<T> parameters, int root = 0) {
    const std::array<TensorView, 1> one = {TensorView(parameters)};
    broadcast(std::span<const TensorView>(one), root);
  }

  /// Called before a backward pass during which gradients are reduced: they will be the mean of `samples` samples. 0:
  /// the gradients are ignored, even NaNs.
  void begin(std::int64_t samples);
  /// The gradient is final. Called once per gradient in a step, best in the reverse order of registration. Ignored
  /// without begin(), so that a framework's hooks may also call it in passes that accumulate.
  void ready(std::size_t index);
  /// Called after a backward pass whose gradients are not to be reduced yet. The gradients, the mean of `samples`
  /// samples, are added to the accumulated sum and may be overwritten. The sum has the gradients' type. The next
  /// reduce() returns the mean over all. For gradients that are reduced in place, accumulation doubles the memory, from
  /// the first call on. (Passes with equal numbers of samples that add to the gradients themselves do not need this:
  /// divide each loss by the number of passes, and pass the samples of all to reduce().)
  void accumulate(std::int64_t samples);
  /// Drops the accumulated sum, on all ranks; for when their state is restored. Not between begin() and reduce().
  void discard();
  /// Waits until the gradients are the mean over all samples of all ranks. `samples` must equal the argument of
  /// begin(), if that was called. If options.signal throws, nothing is done and reduce() can be called again.
  const ReducedGradients& reduce(std::int64_t samples);
  /// The result of the last reduce().
  const ReducedGradients& reduced() const { return reduced_; }
  bool signalled() const { return reduced_.signalled; }

  /// The norm of all registered gradients as they are now; equal on all ranks after reduce(). Infinite or NaN if an
  /// element is.
  double norm() const;
  /// Scales all gradients so that their global norm is at most `max_norm` (Pascanu et al., "On the difficulty of
  /// training recurrent neural networks", ICML 2013). Returns the norm before. If it is infinite or NaN nothing is
  /// changed, and the step should be skipped. `loss_scale`: the factor by which the gradients are too large, before and
  /// after; `max_norm` and the result are without it.
  double clip_by_global_norm(double max_norm, double loss_scale = 1);
  /// Divides all gradients by the loss scale. This turns small 16-bit gradients into zero, which the scale is meant to
  /// prevent: for these let the optimiser divide, in float.
  void unscale(double loss_scale);

  /// Continues with the ranks of a new generation. Everything begun or accumulated is dropped; running collectives are
  /// aborted.
  void rebind(Communicator communicator);
  const Communicator& communicator() const { return communicator_; }
  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }

 private:
  /// Shared by the communicator's thread and the caller's.
  struct InProgress {
    std::mutex mutex;
    std::condition_variable changed;
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
  void abort_and_wait() noexcept;
  void finish_mean();
  void finish_alone(bool signal);
  void end_step();

  Communicator communicator_;
  DataParallelOptions options_;
  std::vector<TensorView> gradients_;
  ReducedGradients reduced_;

  // Valid for a generation, or until another gradient is registered:
  bool planned_ = false, agreed_ = false;
  std::vector<detail::GradientBucket> buckets_;
  std::vector<std::shared_ptr<void>> memory_;  ///< by bucket; null for in-place buckets, until they accumulate
  std::vector<std::size_t> bucket_of_;         ///< by gradient
  double unit_ = 1;                            ///< a power of two: sums have the weights samples / unit_
  std::exception_ptr broken_;                  ///< the error that has ended this generation

  // Valid for a step:
  std::mutex step_;  ///< ready() may be called from any thread
  bool begun_ = false, accumulated_ = false;
  double accumulated_unit_ = 1;                ///< the same for the accumulated sum
  std::int64_t samples_ = 0;                   ///< of the backward pass that is being reduced
  detail::GradientTail tail_ = {};             ///< of this rank
  std::vector<bool> ready_;                    ///< by gradient
  std::vector<std::size_t> awaited_;           ///< by bucket: number of gradients that are not ready
  std::size_t next_ = 0;                       ///< the next bucket to be reduced
  mutable std::vector<GradientPiece> pieces_;  ///< of the current call
  InProgress in_progress_;
};

}  // namespace hypertune::inline v0

#include <hypertune/train/impl/data_parallel.hpp>
