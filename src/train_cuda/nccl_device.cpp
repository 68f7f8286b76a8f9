// Part of hypertune::train_cuda.
#include "nccl_device.hpp"

#include <hypertune/train/detail/polling.hpp>

namespace hypertune::inline v0::detail {

// Everything is allocated here: later, an allocation could wait for another rank's collective on this device, which
// waits for this rank.
NcclDevice::NcclDevice(int device, std::size_t staging_bytes)
    : number(device),
      staging(staging_bytes),
      barrier(allocate_on_device(1)),
      staged(make_event()),
      stream(make_stream()) {}

void NcclDevice::drain() const {
  Pauses pauses;
  while (cudaStreamQuery(stream.get()) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    pauses.pause();
  }
  static_cast<void>(cudaGetLastError());
}

cudaError_t NcclDevice::error() const {
  const cudaError_t result = cudaStreamQuery(stream.get());
  static_cast<void>(cudaGetLastError());
  return result == cudaErrorNotReady ? cudaSuccess : result;
}

}  // namespace hypertune::inline v0::detail
