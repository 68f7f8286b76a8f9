// Coroutines and handlers on a thread of their own, of whose exceptions somebody learns.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote::detail {

inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) { return e.what(); } catch (...) {
    return "unknown error";
  }
}

/// Starts a coroutine on an io_context or executor. If it ends with an exception, `on_error(const std::string& why)` is
/// called there. (With asio::detached nobody would learn of it, and who waits for its work would wait for ever.)
template <class Where, class OnError>
void spawn(Where&& where, boost::asio::awaitable<void> coroutine, OnError on_error) {
  boost::asio::co_spawn(where, std::move(coroutine), [on_error = std::move(on_error)](const std::exception_ptr& error) {
    if (error) on_error(text_of(error));
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
      } catch (...) { on_error(text_of(std::current_exception())); }
    } catch (...) { return io.stop(); }
}

}  // namespace hypertune::inline v0::remote::detail
