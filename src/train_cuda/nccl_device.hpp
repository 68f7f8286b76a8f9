// What one rank has on its device.
#pragma once

#include "cuda_objects.hpp"
#include "nccl_handle.hpp"
#include "staging.hpp"

namespace hypertune::inline v0::detail {

/// Shared by the group and what runs aside for it: a device that hangs keeps it until it goes on, and whoever is last
/// gives it back. Giving back waits for the device.
struct NcclDevice {
  NcclDevice(int device, std::size_t staging_bytes);
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  /// Until nothing is in the stream. However long that takes.
  void drain() const;
  /// What CUDA says of the stream, without waiting; that it is busy is no error.
  cudaError_t error() const;

  int number;
  Staging staging;
  DeviceMemory barrier;  ///< the element that barriers reduce
  Event staged;
  Stream stream;  ///< after what is used in it, so that it goes first
  NcclHandle handle;
  /// Where NCCL puts a communicator that is being connected: at once, at the end of connecting, or both.
  ncclComm_t made = nullptr;
};

}  // namespace hypertune::inline v0::detail
