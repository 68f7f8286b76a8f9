// An exception that leaves the middle of an operation destroys the coroutine that waits for it: its caller learns of the
// end, and the client goes on.
#include "engine.hpp"

#include "support/standard_error.hpp"
#include "support/test.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <stdexcept>
#include <utility>

using namespace hypertune;
namespace asio = boost::asio;

namespace {

asio::awaitable<int> broken(asio::io_context& io) {
  const auto start = [&io](auto handler) {
    asio::post(io, [kept = std::move(handler)] { throw std::length_error("field value too large"); });
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(start, asio::use_awaitable);
  co_return 1;
}

asio::awaitable<int> sound(asio::io_context& io) {
  co_await asio::post(io, asio::use_awaitable);
  co_return 7;
}

}  // namespace

TEST_CASE("a call that an exception cuts off ends with an error, and the client goes on") {
  const auto lines = said([] {
    k8s::Access access;
    access.server = "http://127.0.0.1:1";  // which nobody asks here
    k8s::detail::Engine engine(access, {});
    CHECK(engine.wait(sound(engine.io()), {}) == 7);
    CHECK_THROWS_WITH(engine.wait(broken(engine.io()), {}), ContainsSubstring("has failed"));
    CHECK(engine.wait(sound(engine.io()), {}) == 7);
  });
  CHECK_THAT(lines, ContainsSubstring("to the API server ended by an error here (field value too large)"));
}
