// Coroutines and handlers on a thread of their own, of whose exceptions somebody learns.
#pragma once

#include <hypertune/detail/say.hpp>
#include <hypertune/net/failed_connections.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <string>
#include <utility>

namespace hypertune::inline v0::detail {

/// Sets a flag for as long as it lives. As an argument of a coroutine it says whether that one still exists: an exception
/// that leaves a handler of Asio in the middle of an operation destroys the coroutine that waits for it, without its end.
class Exists {
 public:
  explicit Exists(bool& flag) : flag_(flag) { flag_ = true; }
  Exists(const Exists&) = delete;
  Exists& operator=(const Exists&) = delete;
  ~Exists() { flag_ = false; }

 private:
  bool& flag_;
};

/// Starts a coroutine on an io_context or executor. If it ends with an exception, `on_error(const std::string& why)` is
/// called there. (With asio::detached nobody would learn of it, and who waits for its work would wait for ever.)
template <class Where, class OnError>
void spawn(Where&& where, boost::asio::awaitable<void> coroutine, OnError on_error) {
  boost::asio::co_spawn(where, std::move(coroutine), [on_error = std::move(on_error)](const std::exception_ptr& error) {
    if (error) on_error(text_of_error(error));
  });
}

/// Runs the handlers of `io` until it is stopped or has no more work. An exception that leaves a handler goes to
/// `on_error(const std::string& why)`, which must bring about an orderly end; until then the other handlers run. If it
/// throws as well, `io` is stopped.
template <class OnError>
void run_handlers(boost::asio::io_context& io, const OnError& on_error) {
  for (;;) try {
      try {
        io.run();
        return;
      } catch (...) { on_error(text_of_error(std::current_exception())); }
    } catch (...) { return io.stop(); }
}

/// Runs `job()` on a thread of `pool`. An exception is written to the standard error: from a pool's thread it would end
/// the process.
template <class Job>
void run_apart(boost::asio::thread_pool& pool, Job job) {
  boost::asio::post(pool, [job = std::move(job)]() mutable {
    try {
      job();
    } catch (...) { say("hypertune: a task in the background has failed: " + text_of_error(std::current_exception())); }
  });
}

}  // namespace hypertune::inline v0::detail
