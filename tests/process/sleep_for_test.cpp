#include "support/test.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/sleep_for.hpp>

#include <chrono>
#include <limits>
#include <stop_token>
#include <thread>

using hypertune::detail::as_duration;
using hypertune::detail::sleep_for;

TEST_CASE("seconds become a duration that can be added to a time") {
  CHECK(as_duration(1.5) == std::chrono::milliseconds(1500));
  CHECK(as_duration(-1) == std::chrono::seconds(0));
  CHECK(as_duration(std::numeric_limits<double>::infinity()) == std::chrono::seconds(1'000'000'000));
}

TEST_CASE("a sleep ends at a request to stop") {
  const auto begin = std::chrono::steady_clock::now();
  sleep_for({}, 0.01);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(10));
  std::stop_source source;
  std::jthread sleeper([&] { sleep_for(source.get_token(), 1e9); });
  source.request_stop();  // the join returns
}
