// JobThreads: threads for jobs that block.
#pragma once

#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>
#include <hypertune/net/failed_connections.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace hypertune::inline v0::remote::detail {

/// Runs blocking jobs, each on its own thread, so that none waits for another one's peer. Must be used by one thread.
class JobThreads {
 public:
  /// Error of kind `io` if no thread can be started.
  void run(std::function<void()> job) {
    std::erase_if(threads_, [](Thread& each) {
      if (!*each.over) return false;
      each.thread.join();
      return true;
    });
    const auto over = std::make_shared<std::atomic<bool>>(false);
    try {
      threads_.push_back({over, std::thread([over, job = std::move(job)] {
                            try {
                              job();
                            } catch (...) {  // it would end the process
                              hypertune::detail::say("hypertune: a task in the background has failed: " +
                                                     hypertune::detail::text_of_error(std::current_exception()));
                            }
                            *over = true;
                          })});
    } catch (const std::system_error& e) { fail(Errc::io, "cannot start a thread: {}", e.what()); }
  }
  void join() {
    for (auto& each : threads_) each.thread.join();
    threads_.clear();
  }

 private:
  struct Thread {
    std::shared_ptr<std::atomic<bool>> over;
    std::thread thread;
  };
  std::list<Thread> threads_;
};

}  // namespace hypertune::inline v0::remote::detail
