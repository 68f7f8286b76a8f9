// CUDA's objects as C++ owns things, and its errors as exceptions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/cuda_check.cuh>
#include <hypertune/trial/group.hpp>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace hypertune::inline v0::detail {

/// An error of a device spoils all that follows on it: it is the group's that this rank is part of.
inline void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next call of somebody else would report it again
  throw GroupError(is_device_lost(result) ? GroupError::Kind::device : GroupError::Kind::failed,
                   fmt::format("CUDA: {}: {}", what, cudaGetErrorString(result)));
}

/// Of one thing that CUDA makes and takes back.
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

/// Of the current device. It does not wait for the default stream, nor that for it.
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
/// Whether what came before it in its stream is done. Not yet is no error, and is not left to the thread as its last
/// one.
inline bool has_come(const Event& event, const char* what) {
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
