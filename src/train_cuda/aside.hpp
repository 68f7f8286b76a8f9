// Work on a thread of its own, for calls that nothing can end: a device that hangs holds them up, and nobody else.
#pragma once

#include <hypertune/train/polling.hpp>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace hypertune::inline v0::detail {

/// One piece of work that runs aside. The thread belongs to the process, which joins it once it is done: at the next
/// run() or wait(), or at exit. What a device holds up until the end of the process ends with that.
class Aside {
 public:
  /// `work` may not throw, and owns all that it touches: it may outlive the caller. It is let go of before it counts as
  /// done. Where no thread can be made it is done by the caller.
  static std::shared_ptr<Aside> run(std::function<void()> work);

  /// Any thread. Whether it is done, at the latest then.
  bool wait(SteadyTime until);
  /// Without a limit: for another thread of this kind.
  void wait();

 private:
  void finish();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace hypertune::inline v0::detail
