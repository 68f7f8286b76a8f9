// Operations that are started: by handlers and by Asio's completion tokens, cancelled, and left behind.
#include "support/ranks.hpp"
#include "support/test.hpp"

#include <hypertune/train/async_collectives.hpp>
#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace ht = hypertune;
namespace asio = boost::asio;

TEST_CASE("Collectives complete on the token's executor, in order") {
  auto ranks = ht::thread_communicators(3);
  const auto outcomes = ht::test::run_threads(3, [&](int rank) {
    auto& communicator = ranks[static_cast<std::size_t>(rank)];
    asio::io_context context;
    std::vector<int> order;
    std::vector<float> values(100, 1.0F), all(300), part(100), four{static_cast<float>(rank), 2};
    const auto here = std::this_thread::get_id();
    const auto note = [&](int number) {
      return [&, number](const std::exception_ptr& error) {
        order.push_back(!error && std::this_thread::get_id() == here ? number : -1);
      };
    };
    using ht::Reduction;
    ht::async_all_reduce(communicator, std::span(values), Reduction::sum, asio::bind_executor(context, note(0)));
    ht::async_all_gather(communicator, std::span<const float>(values), std::span(all),
                         asio::bind_executor(context, note(1)));
    ht::async_reduce_scatter(communicator, std::span<const float>(all), std::span(part), Reduction::mean,
                             asio::bind_executor(context, note(2)));
    ht::async_broadcast(communicator, std::span(four), 2, asio::bind_executor(context, note(3)));
    ht::async_barrier(communicator, asio::bind_executor(context, note(4)));
    context.run();  // has work until all have completed
    if (order != std::vector{0, 1, 2, 3, 4}) throw std::runtime_error("order");
    if (values[7] != 3 || all[299] != 3 || part[50] != 3 || four[0] != 2) throw std::runtime_error("values");
    std::vector<float> once(1, 2.0F);
    ht::async_all_reduce(communicator, std::span(once), Reduction::sum, asio::use_future).get();
    if (once[0] != 6) throw std::runtime_error("future");
  });
  CHECK(outcomes == std::vector<std::string>(3));
}

TEST_CASE("Cancelling a collective, begun or queued, ends it and the communicator") {
  for (const bool gloo : {false, true}) {
    if (gloo && !ht::has_gloo()) continue;
    for (const bool queued : {false, true}) {
      CAPTURE(gloo, queued);
      ht::test::MemoryRendezvous rendezvous;
      std::promise<void> connected, over;
      const auto wait_over = over.get_future().share();
      const auto outcomes = ht::test::run_threads(2, [&](int rank) {
        const auto place = ht::test::place_of(rank, 2);
        auto communicator = gloo ? ht::connect_gloo(place, rendezvous) : ht::connect_threads(place, rendezvous);
        if (rank == 1) {
          connected.set_value();
          return wait_over.wait();  // comes to no collective
        }
        connected.get_future().wait();
        asio::io_context context;
        asio::cancellation_signal signal;
        std::vector<float> first(10), second(10);
        std::exception_ptr cancelled, other;
        const auto to = [&](std::exception_ptr& error) { return [&](std::exception_ptr e) { error = std::move(e); }; };
        auto cancellable = asio::bind_executor(context, asio::bind_cancellation_slot(signal.slot(), to(cancelled)));
        auto plain = asio::bind_executor(context, to(other));
        if (queued) ht::async_all_reduce(communicator, std::span(first), ht::Reduction::sum, plain);
        ht::async_all_reduce(communicator, std::span(second), ht::Reduction::sum, cancellable);
        if (!queued) ht::async_all_reduce(communicator, std::span(first), ht::Reduction::sum, plain);
        asio::post(context, [&] { signal.emit(asio::cancellation_type::terminal); });
        context.run();
        over.set_value();
        if (ht::test::outcome_of(other) != "changed : a collective was cancelled") std::rethrow_exception(other);
        try {
          std::rethrow_exception(cancelled);
        } catch (const boost::system::system_error& error) {
          if (error.code() != asio::error::operation_aborted) throw;
        }
      });
      CHECK(outcomes == std::vector<std::string>(2));
    }
  }
}

TEST_CASE("A communicator that goes ends what was started") {
  std::vector<std::string> ended;
  {
    auto ranks = ht::thread_communicators(2);
    std::vector<float> values(10);
    for (int i = 0; i < 3; ++i)
      ranks[0].start(ht::collective::AllReduce{values.data(), values.size(), ht::ElementType::float32, {}},
                     [&](const std::exception_ptr& error) { ended.push_back(ht::test::outcome_of(error)); });
    ranks.erase(ranks.begin());
  }
  CHECK(ended ==
        std::vector<std::string>(3, "changed : the communicator was destroyed before this operation was done"));
}

TEST_CASE("The last copy of a communicator may be a handler's") {
  std::promise<void> done;
  {
    auto ranks = ht::thread_communicators(1);
    auto copy = std::make_shared<std::optional<ht::Communicator>>(ranks[0]);
    std::promise<void> go;
    ranks[0].start(ht::collective::Barrier{}, [copy, &done, wait = go.get_future().share()](const std::exception_ptr&) {
      wait.wait();
      copy->reset();
      done.set_value();
    });
    copy.reset();
    ranks.clear();
    go.set_value();
    done.get_future().wait();
  }
}

TEST_CASE("Sizes that do not fit are refused before anything is sent") {
  auto ranks = ht::thread_communicators(2);
  std::vector<float> mine(3), all(5);
  CHECK_THROWS_WITH(ranks[0].all_gather(std::span<const float>(mine), std::span(all)),
                    ContainsSubstring("all_gather of 3 elements of 2 ranks into 5"));
  CHECK_THROWS_WITH(ranks[0].reduce_scatter(std::span<const float>(all), std::span(mine)),
                    ContainsSubstring("reduce_scatter of 5 elements into 3 of each of 2 ranks"));
}
