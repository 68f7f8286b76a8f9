// Children: coroutines that one coroutine has started, and waits for.
#pragma once

#include <hypertune/net/failed_connections.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <exception>
#include <list>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

/// Awaited by a coroutine that has to clean up after it was cancelled; it will not be cancelled again.
inline auto uncancellable() {
  return boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
}

/// Used on the io_context's one thread. join() must be awaited before it is destroyed.
class Children {
 public:
  explicit Children(boost::asio::io_context& io) : io_(io), over_(io, boost::asio::steady_timer::time_point::max()) {}

  std::size_t count() const { return signals_.size(); }
  /// An exception in `work` ends only that coroutine. It is told, unless it is that of a cancelled wait or of a
  /// connection.
  void spawn(boost::asio::awaitable<void> work) {
    const auto at = signals_.emplace(signals_.end());
    boost::asio::co_spawn(io_, std::move(work),
                          boost::asio::bind_cancellation_slot(at->slot(), [this, at](const std::exception_ptr& error) {
                            if (error) tell(error);
                            ended_.splice(ended_.end(), signals_, at);  // its own call still uses it
                            boost::asio::post(io_, [this] {
                              ended_.clear();
                              --pending_;
                              over_.cancel();
                            });
                            ++pending_;
                          }));
  }
  /// Cancels all of them and waits for their end. The caller must have awaited uncancellable() before: a cancelled
  /// coroutine cannot wait for anything, not even for this.
  boost::asio::awaitable<void> join() {
    for (auto at = signals_.begin(); at != signals_.end();) {
      auto& signal = *at++;  // its coroutine may end during the call
      signal.emit(boost::asio::cancellation_type::terminal);
    }
    while (!signals_.empty() || pending_ > 0) {
      boost::system::error_code woken;
      co_await over_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
    }
  }

 private:
  void tell(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const boost::system::system_error&) {  // NOLINT(bugprone-empty-catch)
    } catch (...) { failed_.note(error); }
  }

  boost::asio::io_context& io_;
  hypertune::detail::FailedConnections failed_{"a pod"};
  boost::asio::steady_timer over_;  // never expires; cancel() signals that one has ended
  std::list<boost::asio::cancellation_signal> signals_, ended_;
  int pending_ = 0;
};

}  // namespace hypertune::inline v0::k8s::detail
