// Tuner::async_run(): an experiment as an Asio operation. Not part of <hypertune/hypertune.hpp>, as it includes Asio.
#pragma once

#include <hypertune/tune/tuner.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace hypertune::inline v0 {

template <class CompletionToken>
auto Tuner::async_run(CompletionToken&& token) {
  namespace asio = boost::asio;
  return asio::async_initiate<CompletionToken, void(std::exception_ptr, Results)>(
      [this](auto handler) {
        using Handler = decltype(handler);
        using Work = asio::executor_work_guard<asio::associated_executor_t<Handler>>;
        struct Operation {
          explicit Operation(Handler&& h) : handler(std::move(h)), work(asio::get_associated_executor(handler)) {}
          Handler handler;
          Work work;
        };
        auto operation = std::make_shared<Operation>(std::move(handler));
        if (auto slot = asio::get_associated_cancellation_slot(operation->handler); slot.is_connected())
          slot.assign([this, again = false](asio::cancellation_type) mutable {
            if (std::exchange(again, true))
              stop_now();
            else
              stop();
          });
        start([operation](std::exception_ptr error, Results results) {
          // Kept until post() has returned: an execution context that runs out of work may be destroyed.
          const auto work = std::move(operation->work);
          asio::post(work.get_executor(),
                     [operation, error = std::move(error), results = std::move(results)]() mutable {
                       if (auto slot = asio::get_associated_cancellation_slot(operation->handler); slot.is_connected())
                         slot.clear();
                       auto completed = std::move(operation->handler);
                       operation.reset();
                       std::move(completed)(std::move(error), std::move(results));
                     });
        });
      },
      token);
}

}  // namespace hypertune::inline v0
