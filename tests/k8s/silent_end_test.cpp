// Whether a stream had ended when it was given up.
#include "silent_end.hpp"

#include "support/test.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/socket_pair.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>

using namespace hypertune;

namespace {

/// A stream whose other end is `far`; how often it was taken for silent, and the grace that was left of its end.
struct Watched {
  hypertune::detail::Descriptor far;
  int silences = 0;
  double left = -1;
  remote::AgentStream stream = {};

  Watched() {
    auto [near, other] = hypertune::detail::make_socket_pair();
    far = std::move(other);
    stream.to = hypertune::detail::Descriptor(::dup(near.get()));
    stream.from = std::move(near);
    stream.carrier = remote::StreamCarrier([this](double grace) { left = grace; });
    stream = k8s::watch_for_silence(std::move(stream), [this] { ++silences; });
  }
};

}  // namespace

TEST_CASE("a stream that ends, before or within its grace, was not silent") {
  Watched before;
  before.far = {};
  before.stream.carrier.end(0);
  CHECK(before.silences == 0);

  Watched within;
  std::thread end([&] { within.far = {}; });
  constexpr double grace = 60;
  const auto begin = hypertune::detail::steady_seconds();
  within.stream.carrier.end(grace);
  end.join();
  CHECK(within.silences == 0);
  CHECK(within.left > 0);
  CHECK(within.left <= grace);
  CHECK(hypertune::detail::steady_seconds() - begin < grace);
}

TEST_CASE("a stream that was given up and did not end was silent, whatever it said before") {
  Watched watched;
  REQUIRE(::send(watched.far.get(), "alive", 5, 0) == 5);
  watched.stream.carrier.end(0.05);
  CHECK(watched.silences == 1);
  CHECK(watched.left == 0);
}
