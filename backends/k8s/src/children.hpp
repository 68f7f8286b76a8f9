// Children: coroutines that one coroutine has started, and whose end it waits for.
#pragma once

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

#include <cstddef>
#include <exception>
#include <list>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

/// For a coroutine that has to clean up: it was cancelled, and will not be again.
inline auto uncancellable() {
  return boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
}

/// Used on the io_context's one thread. It outlives them: join() before its end.
class Children {
 public:
  explicit Children(boost::asio::io_context& io) : io_(io), over_(io, boost::asio::steady_timer::time_point::max()) {}

  std::size_t count() const { return signals_.size(); }
  /// What it throws ends it, and nothing else.
  void spawn(boost::asio::awaitable<void> work) {
    const auto at = signals_.emplace(signals_.end());
    boost::asio::co_spawn(io_, std::move(work),
                          boost::asio::bind_cancellation_slot(at->slot(), [this, at](const std::exception_ptr&) {
                            ended_.splice(ended_.end(), signals_, at);  // it is still in use within its own call
                            boost::asio::post(io_, [this] {
                              ended_.clear();
                              --pending_;
                              over_.cancel();
                            });
                            ++pending_;
                          }));
  }
  /// All of them are cancelled and waited for. Whoever waits has said `co_await uncancellable()` before: one that is
  /// cancelled cannot wait for anything, not even for this.
  boost::asio::awaitable<void> join() {
    for (auto at = signals_.begin(); at != signals_.end();) {
      auto& signal = *at++;  // whose coroutine may end within the call
      signal.emit(boost::asio::cancellation_type::terminal);
    }
    while (!signals_.empty() || pending_ > 0) {
      boost::system::error_code woken;
      co_await over_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
    }
  }

 private:
  boost::asio::io_context& io_;
  boost::asio::steady_timer over_;  // never expires; cancel() says that one has ended
  std::list<boost::asio::cancellation_signal> signals_, ended_;
  int pending_ = 0;
};

}  // namespace hypertune::inline v0::k8s::detail
