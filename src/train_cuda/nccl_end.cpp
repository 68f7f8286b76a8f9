// Part of hypertune::train_cuda: how a group ends. NCCL's abort returns when the device has finished the aborted work.
// If that is behind a kernel that never ends, it never returns. So it runs on a thread of its own, which owns
// everything it needs, and is waited for in bounded time.
#include "nccl_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

constexpr double revoke_seconds = 30;  // time limit for NCCL to finish revoked work
constexpr double finish_seconds = 10;
constexpr double least_leave_seconds = 1, max_leave_seconds = 30;

}  // namespace

// Time limit for NCCL and the device to finish aborted work.
double NcclGroup::leave_seconds() const { return std::clamp(options_.timeout, least_leave_seconds, max_leave_seconds); }

NcclGroup::~NcclGroup() {
  const double seconds = std::min(options_.timeout, finish_seconds);
  under_way_.clear();
  started_ = nullptr;
  {
    const std::lock_guard guard(mutex_);
    // The other thread becomes the last owner: releasing the resources waits for the whole device.
    leave(std::move(device_), [seconds](NcclDevice& device) { device.handle.finish(seconds); });
  }
  if (!abandoned_) leaving_->wait(steady_after(seconds + leave_seconds()));
}

void NcclGroup::leave(std::shared_ptr<NcclDevice> device, Leave how) {
  leaving_ = BackgroundCall::run([before = leaving_, device = std::move(device), how = std::move(how)] {
    if (before) before->wait();
    try {
      const DeviceGuard guard(device->number);
      how(*device);
    } catch (const Error&) { device->handle.abort(); }  // the device is lost
    device->drain();
  });
}

void NcclGroup::check_alive() {
  {
    const std::lock_guard guard(mutex_);
    if (!why_) return;
  }
  throw_why();
}

void NcclGroup::give_up(const GroupError& why) {
  end(why);
  throw_why();
}

bool NcclGroup::wait_until_released() {
  std::shared_ptr<BackgroundCall> leaving;
  SteadyTime until = std::chrono::steady_clock::now();
  {
    const std::lock_guard guard(mutex_);
    leaving = leaving_;
    // A lost device does not write to memory any more.
    const bool lost = why_ && why_->kind() == GroupError::Kind::device;
    if (!abandoned_ && !lost) until = steady_after(leave_seconds());
  }
  const bool left = leaving->wait(until);
  const std::lock_guard guard(mutex_);
  abandoned_ = !left;
  return left;
}

bool NcclGroup::has_no_background_work() {
  {
    const std::lock_guard guard(mutex_);
    if (!leaving_) return true;
  }
  return wait_until_released();
}

// When this throws, the buffers belong to the caller again. So it waits until NCCL and the device no longer use them.
// If that takes too long, the error says so.
void NcclGroup::throw_why() {
  const bool left = wait_until_released();
  std::unique_lock lock(mutex_);
  const GroupError why = *why_;
  lock.unlock();
  if (left || why.kind() == GroupError::Kind::device) throw why;
  throw GroupError(why.kind(),
                   fmt::format("{}; device {} is still busy with what was put into its streams before: buffers in its "
                               "memory that were given to collectives may be written to until it is done",
                               why.what(), nccl_.device),
                   why.ranks());
}

void NcclGroup::end(const GroupError& why) {
  {
    const std::lock_guard guard(mutex_);
    if (why_) return;
    why_ = why;
    leave(device_, [revoke = nccl_.revoke](NcclDevice& device) {
      if (revoke)
        device.handle.revoke(revoke_seconds);
      else
        device.handle.abort();
    });
  }
  changed_.notify_all();
}

void NcclGroup::give_back(Leave how) {
  {
    const std::lock_guard guard(mutex_);
    if (!why_) why_ = GroupError(GroupError::Kind::changed, "NCCL: this communicator is of an earlier generation");
    leave(device_, std::move(how));
  }
  changed_.notify_all();
  static_cast<void>(wait_until_released());
}

// For a group that a next generation replaces. A healthy communicator is finalized, as its peers do the same.
void NcclGroup::release(bool in_order) {
  const double seconds = std::min(options_.timeout, finish_seconds);
  give_back([in_order, seconds](NcclDevice& device) {
    if (in_order)
      device.handle.finish(seconds);
    else
      device.handle.abort();
  });
}

}  // namespace hypertune::inline v0::detail
