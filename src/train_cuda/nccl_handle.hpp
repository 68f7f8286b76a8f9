// The owner of an ncclComm_t.
#pragma once

#include <hypertune/trial/group.hpp>

#include <nccl.h>

#include <mutex>
#include <string>

namespace hypertune::inline v0::detail {

constexpr bool nccl_can_shrink = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3);
constexpr bool nccl_can_revoke = NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7);
constexpr bool nccl_can_grow = NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2);

/// A non-blocking communicator of NCCL. It follows these rules of NCCL:
/// - No two calls with one communicator at the same time: each is made under the mutex. Calls that may take long are
///   made on another thread (BackgroundCall): ncclCommGetUniqueId() and ncclCommGrow() of former ranks, which
///   communicate with their peers; and ncclCommAbort() and ncclCommDestroy(), before which the communicator is taken
///   out, so that no other thread can use it. All other calls return at once.
/// - After ncclInProgress only ncclCommGetAsyncError() and ncclCommAbort() may be called, until the former returns
///   something else. So after a call, continue only when state() has returned ncclSuccess.
/// - It is released once: aborted, or destroyed.
/// - The device must be current in the calling thread (DeviceGuard).
class NcclHandle {
 public:
  NcclHandle() = default;
  explicit NcclHandle(ncclComm_t comm) : comm_(comm) {}
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;
  ~NcclHandle() { abort(); }  // unless it was finished or aborted before

  void adopt(ncclComm_t comm);

  /// Returns `call(comm)`, made under the mutex. ncclInvalidUsage if the communicator is gone or revoked.
  template <class Call>
  ncclResult_t call(Call&& call) {
    const std::lock_guard guard(mutex_);
    if (!comm_ || revoked_) return ncclInvalidUsage;
    return call(comm_);
  }
  /// Like call(), but for revoked ones, too: for calls that make a new communicator from it.
  template <class Call>
  ncclResult_t inherit(Call&& call) {
    const std::lock_guard guard(mutex_);
    return comm_ ? call(comm_) : ncclInvalidUsage;
  }

  /// NCCL's state of the last call: ncclSuccess, ncclInProgress, or its error.
  ncclResult_t state();
  std::string last_error();
  bool exists();  ///< neither aborted nor destroyed

  /// Ends all operations, here and on the device. Returns when that is done, which is never if a kernel before them
  /// does not end.
  void abort();
  /// Ends all operations and keeps the communicator for inherit(). False: that was not possible, and it was aborted.
  bool revoke(double seconds);
  /// Releases it when all its data has arrived; aborts it after this number of seconds.
  void finish(double seconds);

 private:
  ncclComm_t take();
  bool settles(double seconds);

  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  bool revoked_ = false;
};

}  // namespace hypertune::inline v0::detail
