// Wakeup: lets a coroutine wait until another one on the same thread raises it.
#pragma once

#include <hypertune/detail/as_duration.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace hypertune::inline v0::detail {

/// For one waiter at a time. A raise() before the wait is not lost; several count as one.
class Wakeup {
 public:
  static constexpr double for_ever = 1e9;

  explicit Wakeup(const boost::asio::any_io_executor& executor) : timer_(executor) {}
  explicit Wakeup(boost::asio::io_context& io) : timer_(io) {}

  void raise() {
    raised_ = true;
    timer_.cancel();
  }
  /// Returns at a raise(), or after `seconds`.
  boost::asio::awaitable<void> wait(double seconds = for_ever) {
    if (!raised_) {
      timer_.expires_after(as_duration(seconds));
      boost::system::error_code ignored;
      co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
    raised_ = false;
  }

 private:
  boost::asio::steady_timer timer_;
  bool raised_ = false;
};

}  // namespace hypertune::inline v0::detail
