// Runs calls that cannot be interrupted on a thread of their own, so that a hanging device blocks nothing else.
#pragma once

#include <hypertune/train/detail/polling.hpp>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace hypertune::inline v0::detail {

/// One piece of work on a thread of its own. The thread belongs to the process, which joins it when it is done: at the
/// next run() or wait(), or at exit. A thread that is blocked by a device until then ends with the process.
class BackgroundCall {
 public:
  /// Runs `work`, which must not throw and must own everything that it uses, as it may outlive the caller. It is
  /// destroyed before it counts as done. If no thread can be started, the caller runs it.
  static std::shared_ptr<BackgroundCall> run(std::function<void()> work);

  /// Waits until the work is done or `until` has passed. Returns whether it is done. May be called from any thread.
  bool wait(SteadyTime until);
  /// Waits without a limit. To be called only within other work of this kind.
  void wait();

 private:
  void finish();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace hypertune::inline v0::detail
