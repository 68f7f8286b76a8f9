// Operations as NCCL has them.
#pragma once

#include <hypertune/train/communicator.hpp>

#include <nccl.h>

#include <cstddef>

namespace hypertune::inline v0::detail {

/// An operation on memory of the device, put into NCCL's queue. `barrier`: the element that a barrier reduces.
ncclResult_t launch(const collective::Operation& operation, void* barrier, ncclComm_t comm, cudaStream_t stream);

/// Elements of each rank's share; 1 of a barrier.
std::size_t count_of(const collective::Operation& operation);
/// Its `after`; null where there is none.
void* after_of(const collective::Operation& operation);
/// Whether its buffers are the device's. Error of kind `usage` where one is and the other is not, or where it is
/// another device's.
bool in_device_memory(const collective::Operation& operation, int device);

}  // namespace hypertune::inline v0::detail
