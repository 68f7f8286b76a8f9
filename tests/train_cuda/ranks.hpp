// Ranks that are threads of a test, and the Rendezvous where they meet.
#pragma once

#include "support/cuda/stand_in.hpp"
#include "support/eventually.hpp"
#include "support/rendezvous.hpp"
#include "support/test.hpp"

#include <hypertune/train/nccl_communicator.hpp>
#include <hypertune/trial/group.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ranks {

namespace ht = hypertune;

using ht::test::MemoryRendezvous;

inline ht::GroupError generation_over() { return {ht::GroupError::Kind::changed, "the generation is over"}; }

inline ht::GroupPlace place(int rank, int size, std::uint32_t generation = 1) {
  ht::GroupPlace place;
  place.generation = generation;
  place.rank = rank;
  place.hosts.assign(static_cast<std::size_t>(size), "host");
  return place;
}

/// CHECK() is for one thread.
inline void expect(bool holds, const std::source_location& where = std::source_location::current()) {
  if (!holds) throw std::logic_error("line " + std::to_string(where.line()) + " does not hold");
}

/// `work(rank)` in a thread for each; what they threw, by rank.
inline std::vector<std::exception_ptr> in_threads(int size, const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (...) { thrown[static_cast<std::size_t>(rank)] = std::current_exception(); }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}
inline void all_well(const std::vector<std::exception_ptr>& thrown) {
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}
inline ht::GroupError group_error(const std::exception_ptr& thrown) {
  REQUIRE(thrown);
  try {
    std::rethrow_exception(thrown);
  } catch (const ht::GroupError& error) { return error; }
}

/// Elements in the memory of the stand-in's device. The host may not look into it: get() copies.
template <class T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values) : size_(values.size()) {
    void* memory = nullptr;
    cudaMalloc(&memory, std::max<std::size_t>(1, size_ * sizeof(T)));
    data_ = static_cast<T*>(memory);
    cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { cudaFree(data_); }
  std::span<T> span() { return {data_, size_}; }
  T* data() { return data_; }
  std::vector<T> get() {
    std::vector<T> values(size_);
    cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// A stream of the user's, with a kernel in it that ends when it is told to.
class Gated {
 public:
  Gated() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  Gated(const Gated&) = delete;
  Gated& operator=(const Gated&) = delete;
  ~Gated() {
    open();
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  cudaStream_t stream() const { return stream_; }
  void close() {
    stand_in::run_in_stream(stream_, [this] {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return open_; });
    });
  }
  void open() {
    const std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  cudaStream_t stream_ = nullptr;
};

inline ht::collective::AllReduce sum_of(DeviceVector<float>& values, void* after) {
  return {values.data(), values.span().size(), ht::ElementType::float32, ht::Reduction::sum, after};
}

/// What goes on aside is done, in the end.
inline bool nothing_is_held() {
  return ht::test::eventually([] { return stand_in::held() == stand_in::Held{}; });
}

/// Begins and ends with nothing held and no rule broken.
class Watch {
 public:
  explicit Watch(int devices = 2) { stand_in::reset(devices); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    CHECK(stand_in::misuse() == std::vector<std::string>{});
    CHECK((stand_in::held() == stand_in::Held{}));
  }
};

}  // namespace ranks
