// Owning types for CUDA's objects; its errors become exceptions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/cuda_check.cuh>
#include <hypertune/trial/group.hpp>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace hypertune::inline v0::detail {

/// Throws a GroupError: an error of a device makes all later work on it fail, and with it the group of this rank.
inline void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next call would report it again
  throw GroupError(is_device_lost(result) ? GroupError::Kind::device : GroupError::Kind::failed,
                   fmt::format("CUDA: {}: {}", what, cudaGetErrorString(result)));
}

/// Owns a CUDA object; `destroy` releases it.
template <class T, cudaError_t (*destroy)(T)>
class CudaOwner {
 public:
  CudaOwner() = default;
  explicit CudaOwner(T value) : value_(value) {}
  CudaOwner(CudaOwner&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  CudaOwner& operator=(CudaOwner&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~CudaOwner() {
    if (value_) static_cast<void>(destroy(value_));
  }
  T get() const { return value_; }

 private:
  T value_ = {};
};
using Stream = CudaOwner<cudaStream_t, cudaStreamDestroy>;
using Event = CudaOwner<cudaEvent_t, cudaEventDestroy>;
using DeviceMemory = CudaOwner<void*, cudaFree>;
using PinnedMemory = CudaOwner<void*, cudaFreeHost>;

/// A stream of the current device that does not synchronise with the default stream.
inline Stream make_stream() {
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
  return Stream(made);
}
inline Event make_event() {
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
  return Event(made);
}
/// Whether the work before the event in its stream is done. "Not ready" is not an error, and is cleared so that it does
/// not stay the thread's last error.
inline bool is_complete(const Event& event, const char* what) {
  const cudaError_t result = cudaEventQuery(event.get());
  if (result == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
  if (result != cudaErrorNotReady) check_cuda(result, what);
  return result == cudaSuccess;
}
inline DeviceMemory allocate_on_device(std::size_t bytes) {
  void* made = nullptr;
  check_cuda(cudaMalloc(&made, bytes), "allocating memory of the device");
  return DeviceMemory(made);
}
inline PinnedMemory allocate_pinned(std::size_t bytes) {
  void* made = nullptr;
  check_cuda(cudaHostAlloc(&made, bytes, cudaHostAllocDefault), "allocating pinned memory");
  return PinnedMemory(made);
}

}  // namespace hypertune::inline v0::detail
