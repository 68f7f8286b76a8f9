// Turns errors of CUDA into exceptions. For code compiled by nvcc: needs only CUDA's headers and the standard library.
#pragma once

#include <hypertune/trial/device_lost.hpp>

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace hypertune::inline v0 {

/// Whether CUDA will return this error to every later call of the process, so that work must continue in another
/// process: the errors for which CUDA's reference says so, and hardware errors that cannot be corrected.
inline bool is_device_lost(cudaError_t error) {
  switch (static_cast<int>(error)) {  // numbers: the headers of older toolkits do not have all of the names
    case 214:                         // cudaErrorECCUncorrectable
    case 220:                         // cudaErrorNvlinkUncorrectable
    case 226:                         // cudaErrorContained
    case 700:                         // cudaErrorIllegalAddress
    case 702:                         // cudaErrorLaunchTimeout
    case 710:                         // cudaErrorAssert
    case 714:                         // cudaErrorHardwareStackError
    case 715:                         // cudaErrorIllegalInstruction
    case 716:                         // cudaErrorMisalignedAddress
    case 717:                         // cudaErrorInvalidAddressSpace
    case 718:                         // cudaErrorInvalidPc
    case 719:                         // cudaErrorLaunchFailure
    case 721:                         // cudaErrorTensorMemoryLeak
    case 810:                         // cudaErrorMpsClientTerminated
    case 911:                         // cudaErrorExternalDevice
      return true;
    default: return false;
  }
}

/// Throws DeviceLost, or, if the device is still usable, std::runtime_error: "CUDA: copying: out of memory".
inline void cuda_check(cudaError_t result, const char* doing) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next launch would report it again
  const std::string text = std::string("CUDA: ") + doing + ": " + cudaGetErrorString(result);
  if (is_device_lost(result)) throw DeviceLost(text);
  throw std::runtime_error(text);
}

}  // namespace hypertune::inline v0
