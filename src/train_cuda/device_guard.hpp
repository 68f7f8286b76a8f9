// The device of a thread, for as long as calls of ours need it.
#pragma once

#include <cuda_runtime.h>

namespace hypertune::inline v0::detail {

/// Makes the device current for this thread while it lives. A thread that had another one gets it back, unless this
/// process has no context there: setting a device makes one (since CUDA 12), which takes some hundred megabytes of that
/// device's memory. Such a thread keeps `device`.
///
/// Meanwhile a capture of a graph that is begun by another thread does not forbid this thread anything
/// (cudaStreamCaptureModeRelaxed): asking for an event would spoil that capture otherwise. Our streams have no part in
/// captures, see require_no_capture().
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Error of kind `usage` if the stream is being captured into a graph: what waits for an event of such a stream becomes
/// part of the capture.
void require_no_capture(cudaStream_t stream);

}  // namespace hypertune::inline v0::detail
