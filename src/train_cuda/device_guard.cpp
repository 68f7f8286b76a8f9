// Part of hypertune::train_cuda.
#include "device_guard.hpp"

#include "cuda_objects.hpp"

#include <hypertune/error.hpp>

#include <cuda.h>

namespace hypertune::inline v0::detail {

namespace {

// A function of CUDA's driver API. The driver is not linked, but loaded by the runtime.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &found, 11030, cudaEnableDefault, &status);
#elif CUDART_VERSION >= 12000
  const cudaError_t result = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
#else
  const cudaError_t result = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
  status = cudaDriverEntryPointSuccess;
#endif
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
  return result == cudaSuccess && status == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

// Whether this process has a context on the device. Does not create one.
bool has_context(int device) {
  static const auto device_get = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
  static const auto get_state = driver_function<decltype(&cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
  CUdevice handle = 0;
  unsigned flags = 0;
  int active = 0;
  return device_get && get_state && device_get(&handle, device) == CUDA_SUCCESS &&
         get_state(handle, &flags, &active) == CUDA_SUCCESS && active != 0;
}

}  // namespace

DeviceGuard::DeviceGuard(int device) {
  check_cuda(cudaGetDevice(&before_), "asking for the current device");
  changed_ = before_ != device;
  if (changed_) check_cuda(cudaSetDevice(device), "choosing the device");
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "leaving captures alone");
}

DeviceGuard::~DeviceGuard() {
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  if (changed_ && has_context(before_)) static_cast<void>(cudaSetDevice(before_));
}

void require_no_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(stream, &status);
  // This is the result for the default stream while a stream that synchronises with it is captured.
  if (result == cudaErrorStreamCaptureImplicit)
    static_cast<void>(cudaGetLastError());
  else
    check_cuda(result, "asking whether a stream is captured");
  if (result == cudaErrorStreamCaptureImplicit || status != cudaStreamCaptureStatusNone)
    fail(Errc::usage,
         "a collective after a stream that is being captured into a graph: collectives are no part of graphs; start it "
         "before cudaStreamBeginCapture() or after cudaStreamEndCapture()");
}

}  // namespace hypertune::inline v0::detail
