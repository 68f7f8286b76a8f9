// Sets the current device of a thread during calls of this library.
#pragma once

#include <cuda_runtime.h>

namespace hypertune::inline v0::detail {

/// Makes the device current for this thread during its lifetime. The previous device is restored, unless this process
/// has no context there: setting a device creates one (since CUDA 12), which takes some hundred megabytes of that
/// device's memory. In that case `device` stays current.
///
/// Meanwhile a graph capture by another thread does not restrict this thread (cudaStreamCaptureModeRelaxed): otherwise
/// querying an event would invalidate that capture. The streams of this library never take part in captures, see
/// require_no_capture().
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

/// Error of kind `usage` if the stream is being captured into a graph: work that waits for an event of such a stream
/// becomes part of the capture.
void require_no_capture(cudaStream_t stream);

}  // namespace hypertune::inline v0::detail
