// Part of hypertune::train_cuda.
#include "nccl_handle.hpp"

#include <hypertune/train/detail/polling.hpp>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace hypertune::inline v0::detail {

void NcclHandle::adopt(ncclComm_t comm) {
  const std::lock_guard guard(mutex_);
  comm_ = comm;
  revoked_ = false;
}

ncclResult_t NcclHandle::state() {
  const std::lock_guard guard(mutex_);
  if (!comm_) return ncclInvalidUsage;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

std::string NcclHandle::last_error() {
  const std::lock_guard guard(mutex_);
  const char* text = comm_ ? ncclGetLastError(comm_) : nullptr;
  return text ? text : "";
}

bool NcclHandle::exists() {
  const std::lock_guard guard(mutex_);
  return comm_ != nullptr;
}

ncclComm_t NcclHandle::take() {
  const std::lock_guard guard(mutex_);
  return std::exchange(comm_, nullptr);
}

void NcclHandle::abort() {
  // The result does not matter: nothing else can be done with the communicator.
  if (ncclComm_t comm = take()) static_cast<void>(ncclCommAbort(comm));
}

bool NcclHandle::settles(double seconds) {
  const auto deadline = steady_after(seconds);
  Pauses pauses;
  for (;;) {
    const ncclResult_t now = state();
    if (now != ncclInProgress) return now == ncclSuccess;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    pauses.pause();
  }
}

bool NcclHandle::revoke([[maybe_unused]] double seconds) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7)
  ncclResult_t result = ncclInvalidUsage;
  {
    const std::lock_guard guard(mutex_);
    if (comm_ && revoked_) return true;
    if (comm_) {
      revoked_ = true;  // from here on no other call is made
      result = ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT);
    }
  }
  if ((result == ncclSuccess || result == ncclInProgress) && settles(seconds)) return true;
#endif
  abort();
  return false;
}

void NcclHandle::finish(double seconds) {
  bool revoked = false;
  {
    const std::lock_guard guard(mutex_);
    revoked = revoked_;
  }
  if (!revoked) {  // a revoked communicator has no operations in progress and must not be finalized
    const ncclResult_t result = call([](ncclComm_t comm) { return ncclCommFinalize(comm); });
    if ((result != ncclSuccess && result != ncclInProgress) || !settles(seconds)) return abort();
  }
  if (ncclComm_t comm = take()) static_cast<void>(ncclCommDestroy(comm));
}

}  // namespace hypertune::inline v0::detail
