// Coroutines and handlers that fail: somebody learns of it, and the others go on.
#include "support/test.hpp"

#include <hypertune/net/spawn.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/post.hpp>

#include <stdexcept>
#include <string>
#include <vector>

using namespace hypertune;
using hypertune::detail::run_handlers;
using hypertune::detail::spawn;
using hypertune::detail::Wakeup;
namespace asio = boost::asio;

namespace {

using Texts = std::vector<std::string>;

asio::awaitable<void> fail_later(Wakeup& wakeup, std::string why) {
  co_await wakeup.wait(0.01);
  if (!why.empty()) throw std::runtime_error(why);
}

}  // namespace

TEST_CASE("the exception of a coroutine is told, and nothing where there is none") {
  asio::io_context io(1);
  Wakeup first(io), second(io);
  Texts told;
  const auto tell = [&](const std::string& why) { told.push_back(why); };
  spawn(io, fail_later(first, "it broke"), tell);
  spawn(io, fail_later(second, ""), tell);
  io.run();
  CHECK(told == Texts{"it broke"});
}

TEST_CASE("an exception that leaves a handler is told, and the others run until they are stopped") {
  asio::io_context io(1);
  Texts told;
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    asio::post(io, [] { throw std::runtime_error("it broke"); });
    asio::post(io, [&] { ++ran; });
  }
  asio::post(io, [] { throw 7; });
  run_handlers(io, [&](const std::string& why) { told.push_back(why); });
  CHECK(told == Texts{"it broke", "it broke", "it broke", "unknown error"});
  CHECK(ran == 3);

  io.restart();
  asio::post(io, [] { throw std::runtime_error("it broke"); });
  asio::post(io, [&] { ++ran; });
  run_handlers(io, [&](const std::string& why) { throw std::runtime_error(why); });
  CHECK(io.stopped());
  CHECK(ran == 3);
}
