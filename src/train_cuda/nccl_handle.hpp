// The one owner of an ncclComm_t.
#pragma once

#include <hypertune/trial/group.hpp>

#include <nccl.h>

#include <mutex>
#include <string>

namespace hypertune::inline v0::detail {

constexpr bool nccl_can_shrink = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3);
constexpr bool nccl_can_revoke = NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7);
constexpr bool nccl_can_grow = NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2);

/// A non-blocking communicator of NCCL. What NCCL asks for, and what is kept here:
/// - No two calls with one communicator at once: each is made under the mutex. Who calls what may take its time does so
///   on a thread of its own (Aside): ncclCommGetUniqueId() and ncclCommGrow() of former ranks, which talk to their
///   peers; and ncclCommAbort() and ncclCommDestroy(), for which the communicator is taken out first, so that nobody
///   else can have it. All others return at once.
/// - After ncclInProgress only ncclCommGetAsyncError() and ncclCommAbort() may be called, until that says something
///   else. So whoever starts something goes on when state() has said ncclSuccess, and not before.
/// - It is given back once: aborted, or destroyed.
/// - The device is current in the calling thread (DeviceGuard).
class NcclHandle {
 public:
  NcclHandle() = default;
  explicit NcclHandle(ncclComm_t comm) : comm_(comm) {}
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;
  ~NcclHandle() { abort(); }  // of what was neither finished nor aborted

  void adopt(ncclComm_t comm);

  /// `call(comm)` under the mutex. ncclInvalidUsage where the communicator is no more, or is revoked.
  template <class Call>
  ncclResult_t call(Call&& call) {
    const std::lock_guard guard(mutex_);
    if (!comm_ || revoked_) return ncclInvalidUsage;
    return call(comm_);
  }
  /// As call(), of a revoked one, too: what makes a new communicator out of it.
  template <class Call>
  ncclResult_t inherit(Call&& call) {
    const std::lock_guard guard(mutex_);
    return comm_ ? call(comm_) : ncclInvalidUsage;
  }

  /// What NCCL says of what was started last: ncclSuccess, ncclInProgress, or its error.
  ncclResult_t state();
  std::string last_error();
  bool exists();  ///< neither aborted nor destroyed

  /// Ends what is under way, here and on the device. Returns when that has been done: behind a kernel that never ends,
  /// never.
  void abort();
  /// Likewise, and the communicator is left for inherit(). False: that was not possible, and it is aborted.
  bool revoke(double seconds);
  /// Gives it back when all that it has sent has arrived; aborts after so many seconds.
  void finish(double seconds);

 private:
  ncclComm_t take();
  bool settles(double seconds);

  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  bool revoked_ = false;
};

}  // namespace hypertune::inline v0::detail
