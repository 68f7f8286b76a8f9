// The resources of one rank on its device.
#pragma once

#include "cuda_objects.hpp"
#include "nccl_handle.hpp"
#include "staging.hpp"

namespace hypertune::inline v0::detail {

/// Shared by the group and its work on other threads. If the device hangs, that work keeps the resources until the
/// device continues; the last owner releases them. Releasing them waits for the device.
struct NcclDevice {
  NcclDevice(int device, std::size_t staging_bytes);
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  /// Waits until the stream is empty, without a limit.
  void drain() const;
  /// The error of the stream, if any, without waiting. That it is busy is not an error.
  cudaError_t error() const;

  int number;
  Staging staging;
  DeviceMemory barrier;  ///< the element that barriers reduce
  Event staged;
  Stream stream;  ///< declared after the objects that are used in it, so that it is destroyed first
  NcclHandle handle;
  /// Where NCCL stores a communicator that is being connected: at once, at the end of connecting, or both.
  ncclComm_t made = nullptr;
};

}  // namespace hypertune::inline v0::detail
