// Collectives as Asio operations: async_all_reduce(communicator, gradients, Reduction::mean, token). Requires Asio.
//
// They complete with a std::exception_ptr on the token's associated executor; use_awaitable and use_future throw the
// exception in it. An operation keeps the communicator alive, but not the buffers, which must live until it completes.
// Cancellation (terminal, as the other ranks are left in the middle of an operation) aborts the communicator. The
// operation, started or queued, completes with boost::asio::error::operation_aborted; all other operations of the
// communicator complete with a GroupError of kind `changed`.
#pragma once

#include <hypertune/train/communicator.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// Starts any collective. Does not check the counts of the operation; the functions below do.
template <class CompletionToken>
auto async_perform(const Communicator& communicator, const collective::Operation& operation, CompletionToken&& token) {
  namespace asio = boost::asio;
  return asio::async_initiate<CompletionToken, void(std::exception_ptr)>(
      [communicator, operation](auto handler) {
        using Handler = decltype(handler);
        using Work = asio::executor_work_guard<asio::associated_executor_t<Handler>>;
        struct Pending {
          Pending(Handler&& h, const Communicator& c)
              : handler(std::move(h)), work(asio::get_associated_executor(handler)), communicator(c) {}
          Handler handler;
          Work work;
          Communicator communicator;
          std::atomic<bool> cancelled{false};
        };
        auto pending = std::make_shared<Pending>(std::move(handler), communicator);
        if (auto slot = asio::get_associated_cancellation_slot(pending->handler); slot.is_connected())
          slot.assign([weak = std::weak_ptr<Pending>(pending)](asio::cancellation_type type) {
            const auto held = weak.lock();
            if (!held || (type & asio::cancellation_type::terminal) == asio::cancellation_type::none) return;
            held->cancelled = true;
            held->communicator.abort({GroupError::Kind::changed, "a collective was cancelled"});
          });
        Communicator started = communicator;
        started.start(operation, [pending = std::move(pending)](std::exception_ptr error) mutable {
          // Kept until post() has returned: an execution context that runs out of work may be destroyed.
          const auto work = std::move(pending->work);
          // Moved, not shared: the operation's objects are released on the executor's thread, not the communicator's.
          asio::post(work.get_executor(), [pending = std::move(pending), error = std::move(error)]() mutable {
            if (auto slot = asio::get_associated_cancellation_slot(pending->handler); slot.is_connected()) slot.clear();
            if (error && pending->cancelled)
              error = std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted));
            auto completed = std::move(pending->handler);
            pending.reset();
            std::move(completed)(std::move(error));
          });
        });
      },
      token);
}

template <Element T, class CompletionToken>
auto async_all_reduce(const Communicator& communicator, std::span<T> data, Reduction reduction,
                      CompletionToken&& token) {
  return async_perform(communicator, collective::AllReduce{data.data(), data.size(), element_type<T>, reduction},
                       std::forward<CompletionToken>(token));
}

template <Element T, class CompletionToken>
auto async_broadcast(const Communicator& communicator, std::span<T> data, int root, CompletionToken&& token) {
  return async_perform(communicator, collective::Broadcast{data.data(), data.size(), element_type<T>, root},
                       std::forward<CompletionToken>(token));
}

/// Throws at once if the sizes do not fit, as Communicator::all_gather does.
template <Element T, class CompletionToken>
auto async_all_gather(const Communicator& communicator, std::type_identity_t<std::span<const T>> mine, std::span<T> all,
                      CompletionToken&& token) {
  return async_perform(communicator, communicator.all_gather_operation(mine, all),
                       std::forward<CompletionToken>(token));
}

/// Throws at once if the sizes do not fit, as Communicator::reduce_scatter does.
template <Element T, class CompletionToken>
auto async_reduce_scatter(const Communicator& communicator, std::type_identity_t<std::span<const T>> all,
                          std::span<T> mine, Reduction reduction, CompletionToken&& token) {
  return async_perform(communicator, communicator.reduce_scatter_operation(all, mine, reduction),
                       std::forward<CompletionToken>(token));
}

template <class CompletionToken>
auto async_barrier(const Communicator& communicator, CompletionToken&& token) {
  return async_perform(communicator, collective::Barrier{}, std::forward<CompletionToken>(token));
}

}  // namespace hypertune::inline v0
