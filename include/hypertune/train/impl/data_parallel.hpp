// DataParallel: definitions.
#pragma once

#include <hypertune/train/data_parallel.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

inline DataParallel::DataParallel(Communicator communicator, DataParallelOptions options)
    : communicator_(std::move(communicator)), options_(std::move(options)) {
  if (!options_.memory) options_.memory = std::make_shared<HostGradientMemory>();
}

inline std::size_t DataParallel::add_view(TensorView gradient) {
  check_idle("add()");
  gradients_.push_back(gradient);
  planned_ = agreed_ = false;
  return gradients_.size() - 1;
}

inline void DataParallel::move(std::size_t index, TensorView gradient) {
  check_idle("move()");
  if (index >= gradients_.size()) fail(Errc::usage, "gradient {} of {}", index, gradients_.size());
  TensorView& old = gradients_[index];
  if (gradient.count != old.count || gradient.type != old.type)
    fail(Errc::usage, "gradient {} moves, but to {} elements in place of {}, or of another type", index, gradient.count,
         old.count);
  old = gradient;
}

inline void DataParallel::check_idle(const char* call) const {
  if (begun_ || accumulated_)
    fail(Errc::usage, "{} in the middle of a step: between begin() or accumulate() and reduce()", call);
}

inline void DataParallel::broadcast(std::span<const TensorView> parameters, int root) {
  for (const TensorView& p : parameters)
    communicator_.perform(collective::Broadcast{p.data, p.count, p.type, root, options_.memory->stream()});
}

inline std::uint64_t DataParallel::registration() const {
  std::uint64_t mixed = detail::mixed_in(options_.first_bucket_bytes, options_.bucket_bytes);
  mixed = detail::mixed_in(mixed, options_.in_place_bytes);
  for (const TensorView& gradient : gradients_)
    mixed = detail::mixed_in(detail::mixed_in(mixed, gradient.count), static_cast<std::uint64_t>(gradient.type));
  return mixed;
}

inline void DataParallel::check_step(std::int64_t samples) {
  if (broken_) std::rethrow_exception(broken_);
  if (samples < 0) fail(Errc::usage, "a gradient of {} samples", samples);
  if (!planned_) plan();
}

inline void DataParallel::plan() {
  buckets_ =
      detail::gradient_buckets(gradients_, options_.first_bucket_bytes, options_.bucket_bytes, options_.in_place_bytes);
  memory_.assign(buckets_.size(), nullptr);
  bucket_of_.assign(gradients_.size(), 0);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& bucket = buckets_[b];
    for (const auto& piece : bucket.pieces) bucket_of_[piece.gradient] = b;
    const std::size_t tail = b + 1 == buckets_.size() ? detail::tail_elements(communicator_.size()) : 0;
    if (!bucket.in_place) memory_[b] = options_.memory->allocate((bucket.count + tail) * size_of(bucket.type));
  }
  static_cast<void>(options_.memory->take_squares());  // discard the sum of an abandoned step
  planned_ = true;
  end_step();
}

/// Once per generation: compares the registered gradients of all ranks, and adds up the samples of their first step.
inline void DataParallel::agree(std::int64_t samples) {
  const std::array<std::int64_t, 2> mine = {static_cast<std::int64_t>(registration()), tail_.samples + samples};
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(communicator_.size()));
  try {
    communicator_.all_gather(std::span<const std::int64_t>(mine), std::span<std::int64_t>(all));
  } catch (...) {
    broken_ = std::current_exception();
    throw;
  }
  std::uint64_t total = 0;
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank] != all[0])
      fail(Errc::usage, "rank {} has registered other gradients than rank 0, or has other options of DataParallel",
           rank);
    total += static_cast<std::uint64_t>(all[2 * rank + 1]);
  }
  unit_ = static_cast<double>(std::bit_ceil(total));  // 1 if there are no samples
  agreed_ = true;
}

inline void DataParallel::begin(std::int64_t samples) {
  if (begun_) fail(Errc::usage, "begin() again without reduce()");
  check_step(samples);
  if (!agreed_) agree(samples);
  if (accumulated_) accumulate_by(unit_);
  const std::lock_guard guard(step_);
  samples_ = samples;
  begun_ = true;
}

inline void DataParallel::ready(std::size_t index) {
  const std::lock_guard guard(step_);
  if (!begun_) return;
  if (index >= gradients_.size()) fail(Errc::usage, "gradient {} of {} is ready", index, gradients_.size());
  if (ready_[index]) fail(Errc::usage, "gradient {} is ready twice in one step", index);
  ready_[index] = true;
  --awaited_[bucket_of_[index]];
  launch_ready();
}

/// Launches the buckets that are ready, in order. The last one waits for reduce(), which knows the rest of its tail.
inline void DataParallel::launch_ready() {
  if (alone()) return;
  for (; next_ + 1 < buckets_.size() && awaited_[next_] == 0; ++next_) {
    const auto& bucket = buckets_[next_];
    launch(bucket, memory_[next_].get());
    start(bucket.in_place ? gradients_[bucket.pieces.front().gradient].data : memory_[next_].get(), bucket.count,
          bucket.type);
  }
}

/// Writes a bucket's weighted gradients to the memory in which they are reduced.
inline void DataParallel::launch(const detail::GradientBucket& bucket, void* memory) {
  pieces_.clear();
  for (const auto& piece : bucket.pieces) {
    const TensorView& gradient = gradients_[piece.gradient];
    void* in_bucket = memory == nullptr ? nullptr : offset_in(memory, piece.offset, bucket.type);
    pieces_.push_back({bucket.in_place ? gradient.data : in_bucket, samples_ != 0 ? gradient.data : nullptr,
                       accumulated_ ? in_bucket : nullptr, gradient.count});
  }
  if (options_.measure_noise && samples_ != 0) options_.memory->add_squares(pieces_, bucket.type);
  options_.memory->combine(pieces_, static_cast<double>(samples_) / unit_, bucket.type);
}

inline void DataParallel::launch_tail(bool signal) {
  const auto& bucket = buckets_.back();
  launch(bucket, memory_.back().get());
  tail_.samples += samples_;
  tail_.parts += samples_ != 0 ? 1 : 0;
  tail_.signal = signal;
  if (options_.measure_noise) tail_.squares += static_cast<double>(samples_) * options_.memory->take_squares();
  const auto tail = detail::encoded_tail(tail_, communicator_.rank(), communicator_.size(), bucket.type);
  options_.memory->upload(offset_in(memory_.back().get(), bucket.count, bucket.type), tail.data(), tail.size());
  start(memory_.back().get(), bucket.count + detail::tail_elements(communicator_.size()), bucket.type);
}

/// Starts a reduction. Its error is thrown by reduce().
inline void DataParallel::start(void* data, std::size_t count, ElementType type) {
  if (communicator_.size() == 1) return;  // it is its own sum, and a backend for one rank may not support this memory
  const auto done = [this](std::exception_ptr error) {  // moved on, so that only one thread releases it
    const std::lock_guard guard(in_progress_.mutex);
    if (error && !in_progress_.error) in_progress_.error = std::move(error);
    --in_progress_.outstanding;
    in_progress_.changed.notify_all();
  };
  {
    const std::lock_guard guard(in_progress_.mutex);
    if (in_progress_.error) return;  // later operations could not complete
    ++in_progress_.outstanding;
  }
  try {
    communicator_.start(collective::AllReduce{data, count, type, Reduction::sum, options_.memory->stream()}, done);
  } catch (...) { done(std::current_exception()); }
}

inline std::exception_ptr DataParallel::wait() {
  std::unique_lock lock(in_progress_.mutex);  // without a limit of its own: collectives have the communicator's
  in_progress_.changed.wait(lock, [&] { return in_progress_.outstanding == 0; });
  return std::exchange(in_progress_.error, nullptr);
}

/// Ends all operations on the gradients.
inline void DataParallel::abort_and_wait() noexcept {
  bool under_way = false;
  {
    const std::lock_guard guard(in_progress_.mutex);
    under_way = in_progress_.outstanding != 0;
  }
  if (under_way) {
    try {
      communicator_.abort(GroupError(GroupError::Kind::changed, "a step was given up before its reduce()"));
    } catch (...) {  // the collectives end by their own timeout
    }
  }
  wait();
}

/// Converts the accumulated sum to another unit.
inline void DataParallel::accumulate_by(double unit) {
  const double factor = std::exchange(accumulated_unit_, unit) / unit;
  if (factor == 1 || !accumulated_) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::array<GradientPiece, 1> whole = {{{memory_[b].get(), memory_[b].get(), nullptr, buckets_[b].count}}};
    options_.memory->combine(whole, factor, buckets_[b].type);
  }
}

inline void DataParallel::accumulate(std::int64_t samples) {
  if (begun_) fail(Errc::usage, "accumulate() after begin(): what is begun ends with reduce()");
  check_step(samples);
  if (samples == 0) return;
  // The unit is the agreed one, or a larger one of this rank if the ranks have not agreed yet or the sum could
  // overflow.
  if (!accumulated_) accumulate_by(agreed_ ? unit_ : 1);
  const auto total = static_cast<std::uint64_t>(tail_.samples + samples);
  if (static_cast<double>(total) > accumulated_unit_) accumulate_by(static_cast<double>(std::bit_ceil(total)));
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& bucket = buckets_[b];
    pieces_.clear();
    for (const auto& piece : bucket.pieces) {
      const TensorView& gradient = gradients_[piece.gradient];
      if (!memory_[b]) memory_[b] = options_.memory->allocate(gradient.bytes());
      void* to = offset_in(memory_[b].get(), piece.offset, bucket.type);
      pieces_.push_back({to, gradient.data, accumulated_ ? to : nullptr, gradient.count});
    }
    if (options_.measure_noise) options_.memory->add_squares(pieces_, bucket.type);
    options_.memory->combine(pieces_, static_cast<double>(samples) / accumulated_unit_, bucket.type);
  }
  if (options_.measure_noise) tail_.squares += static_cast<double>(samples) * options_.memory->take_squares();
  tail_.samples += samples;
  ++tail_.parts;
  accumulated_ = true;
}

inline void DataParallel::discard() {
  if (begun_) fail(Errc::usage, "discard() after begin(): what is begun ends with reduce(), or with rebind()");
  end_step();
}

inline const ReducedGradients& DataParallel::reduce(std::int64_t samples) {
  if (begun_ && samples != samples_) fail(Errc::usage, "reduce() of {} samples after begin() of {}", samples, samples_);
  const bool signal = options_.signal && options_.signal();
  if (!begun_) begin(samples);
  if (alone()) {
    finish_alone(signal);
  } else {
    {
      const std::lock_guard guard(step_);
      std::fill(awaited_.begin(), awaited_.end(), 0);
      launch_ready();
      launch_tail(signal);
    }
    if (const auto error = wait()) {
      end_step();
      broken_ = error;
      std::rethrow_exception(error);
    }
    finish_mean();
  }
  end_step();
  return reduced_;
}

inline void DataParallel::finish_mean() {
  const int size = communicator_.size();
  const auto& last = buckets_.back();
  std::vector<std::byte> bytes(detail::tail_elements(size) * size_of(last.type));
  options_.memory->download(bytes.data(), offset_in(memory_.back().get(), last.count, last.type), bytes.size());
  reduced_ = {};
  for (const auto& tail : detail::decoded_tails(bytes, size, last.type)) {
    reduced_.samples += tail.samples;
    reduced_.parts += static_cast<int>(tail.parts);
    reduced_.signalled = reduced_.signalled || tail.signal;
    reduced_.part_squares += tail.squares;
  }
  const auto total = static_cast<double>(reduced_.samples);
  if (reduced_.samples != 0) reduced_.part_squares /= total;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& bucket = buckets_[b];
    pieces_.clear();
    for (const auto& piece : bucket.pieces) {
      const TensorView& to = gradients_[piece.gradient];
      const void* from = bucket.in_place ? to.data : offset_in(memory_[b].get(), piece.offset, bucket.type);
      pieces_.push_back({to.data, reduced_.samples != 0 ? from : nullptr, nullptr, to.count});
    }
    if (reduced_.samples == 0)
      options_.memory->combine(pieces_, 0, bucket.type);
    else
      options_.memory->divide(pieces_, total / unit_, bucket.type);
  }
  reduced_.square = options_.memory->take_squares();
  // Never decreases: the short batch at the end of an epoch is followed by full ones.
  unit_ = std::max(unit_, static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(reduced_.samples))));
}

/// Without other ranks, and without accumulated gradients, the gradients are already the mean.
inline void DataParallel::finish_alone(bool signal) {
  reduced_ = {.samples = samples_, .parts = samples_ != 0 ? 1 : 0, .signalled = signal};
  for_each_type([&](std::span<const GradientPiece> pieces, ElementType type) {
    if (samples_ != 0) return options_.memory->add_squares(pieces, type);
    for (GradientPiece& piece : pieces_) piece.from = nullptr;
    options_.memory->combine(pieces, 0, type);
  });
  reduced_.square = options_.memory->take_squares();
  if (options_.measure_noise) reduced_.part_squares = reduced_.square;
}

inline void DataParallel::end_step() {
  const std::lock_guard guard(step_);
  begun_ = accumulated_ = false;
  samples_ = 0;
  tail_ = {};
  next_ = 0;
  ready_.assign(gradients_.size(), false);
  awaited_.clear();
  for (const auto& bucket : buckets_) awaited_.push_back(bucket.pieces.size());
}

/// Calls `body` with all gradients in place, grouped by runs of equal types.
inline void DataParallel::for_each_type(const auto& body) const {
  for (std::size_t i = 0; i < gradients_.size();) {
    const ElementType type = gradients_[i].type;
    pieces_.clear();
    for (; i < gradients_.size() && gradients_[i].type == type; ++i)
      pieces_.push_back({gradients_[i].data, gradients_[i].data, nullptr, gradients_[i].count});
    body(std::span<const GradientPiece>(pieces_), type);
  }
}

inline double DataParallel::norm() const {
  for_each_type(
      [&](std::span<const GradientPiece> pieces, ElementType type) { options_.memory->add_squares(pieces, type); });
  return std::sqrt(options_.memory->take_squares());
}

inline double DataParallel::clip_by_global_norm(double max_norm, double loss_scale) {
  if (!(max_norm > 0) || !(loss_scale > 0))
    fail(Errc::usage, "clipping to a norm of {} with a loss scale of {}", max_norm, loss_scale);
  const double before = norm() / loss_scale;
  if (std::isfinite(before) && before > max_norm)
    for_each_type([&](std::span<const GradientPiece> pieces, ElementType type) {
      options_.memory->combine(pieces, max_norm / before, type);
    });
  return before;
}

inline void DataParallel::unscale(double loss_scale) {
  if (!(loss_scale > 0)) fail(Errc::usage, "a loss scale of {}", loss_scale);
  if (loss_scale == 1) return;
  for_each_type([&](std::span<const GradientPiece> pieces, ElementType type) {
    options_.memory->divide(pieces, loss_scale, type);
  });
  static_cast<void>(options_.memory->take_squares());
}

inline void DataParallel::rebind(Communicator communicator) {
  abort_and_wait();
  communicator_ = std::move(communicator);
  broken_ = nullptr;
  planned_ = agreed_ = false;
  end_step();
}

}  // namespace hypertune::inline v0
