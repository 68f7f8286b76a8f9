// Part of hypertune::train_cuda.
#include "background_call.hpp"

#include <hypertune/detail/signal_block.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

namespace {

// How long the exit of the process waits for threads that are nearly done. Blocked threads cost this time only once.
constexpr double exit_seconds = 1;

// The threads that have not been joined. Never destroyed, as some may be blocked forever at exit.
struct Threads {
  struct Running {
    std::thread thread;
    std::shared_ptr<BackgroundCall> work;
  };
  std::mutex mutex;
  std::vector<Running> all;

  static Threads& of_process() {
    static Threads& it = *[] {
      static_cast<void>(std::atexit([] { of_process().join_done(steady_after(exit_seconds)); }));
      return new Threads;
    }();
    return it;
  }
  void join_done(SteadyTime until = std::chrono::steady_clock::now()) {
    const std::lock_guard guard(mutex);
    std::erase_if(all, [until](Running& one) {
      if (!one.work->wait(until)) return false;
      one.thread.join();  // returns at once
      return true;
    });
  }
};

}  // namespace

std::shared_ptr<BackgroundCall> BackgroundCall::run(std::function<void()> work) {
  Threads& threads = Threads::of_process();
  threads.join_done();
  auto call = std::make_shared<BackgroundCall>();
  const auto shared = std::make_shared<std::function<void()>>(std::move(work));
  const auto perform = [call, shared] {
    (*shared)();
    *shared = nullptr;
    call->finish();
  };
  try {
    const std::lock_guard guard(threads.mutex);
    threads.all.reserve(threads.all.size() + 1);
    const SignalBlock for_the_thread;
    threads.all.push_back({std::thread([perform] {
                             // Releasing resources here must not invalidate a stream capture of another thread.
                             cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
                             static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
                             perform();
                           }),
                           call});
  } catch (const std::system_error&) { perform(); }
  return call;
}

bool BackgroundCall::wait(SteadyTime until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [&] { return done_; });
}

void BackgroundCall::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
}

void BackgroundCall::finish() {
  const std::lock_guard guard(mutex_);
  done_ = true;
  changed_.notify_all();
}

}  // namespace hypertune::inline v0::detail
