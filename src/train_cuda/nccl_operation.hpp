// Operations as calls of NCCL.
#pragma once

#include <hypertune/train/communicator.hpp>

#include <nccl.h>

#include <cstddef>

namespace hypertune::inline v0::detail {

/// Puts an operation on device memory into NCCL's queue. `barrier`: the element that a barrier reduces.
ncclResult_t launch(const collective::Operation& operation, void* barrier, ncclComm_t comm, cudaStream_t stream);

/// The number of elements of each rank's share; 1 for a barrier.
std::size_t count_of(const collective::Operation& operation);
/// Its `after`; null if it has none.
void* after_of(const collective::Operation& operation);
/// Whether its buffers are in the device's memory. Error of kind `usage` if only one is, or one is on another device.
bool in_device_memory(const collective::Operation& operation, int device);

}  // namespace hypertune::inline v0::detail
