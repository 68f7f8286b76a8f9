// The page that a run serves of itself.
#include "record/record_support.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/show/dashboard.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

using namespace hypertune;

namespace {

namespace asio = boost::asio;

struct One {
  double x;
};

auto one_dimension() { return space<One>(dim("x", &One::x, uniform(0.0, 1.0))); }

// All that the server answers; "" where there is none.
std::string asked(std::uint16_t port, const std::string& target) {
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  boost::system::error_code error;
  socket.connect({asio::ip::address_v4::loopback(), port}, error);
  if (error) return "";
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  asio::write(socket, asio::buffer(request));
  std::string text;
  asio::read(socket, asio::dynamic_buffer(text), error);
  return text;
}

}  // namespace

TEST_CASE("a run serves its page from before its first record to its end") {
  support::TemporaryFolder root;
  const auto folder = root.path() / "run";
  std::uint16_t port = 0;
  std::filesystem::path shown;
  bool begun = true;
  std::string page, summary;
  Options options;
  options.output = folder;
  options.samples = 1;
  options.display = Display::quiet;
  options.dashboard = [&](const std::filesystem::path& experiment) -> std::shared_ptr<void> {
    shown = experiment;
    begun = has_journal(experiment);
    DashboardServing serving;
    serving.folders = {experiment};
    serving.expected = true;
    auto served = std::make_shared<Dashboard>(std::move(serving));
    port = served->port();
    return served;
  };
  const auto results = tune(
      one_dimension(),
      [&](const One& one) {
        page = asked(port, "/");
        // The first look may come before the first record is durable.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (summary.find("\"state\":\"running\"") == std::string::npos && std::chrono::steady_clock::now() < end)
          summary = asked(port, "/api/summary");
        return one.x;
      },
      options);
  CHECK(shown == folder);
  CHECK(!begun);
  CHECK(page.starts_with("HTTP/1.1 200"));
  CHECK_THAT(summary, ContainsSubstring("\"state\":\"running\""));
  CHECK(results.count(TrialState::completed) == 1);
  CHECK(asked(port, "/").empty());
}

TEST_CASE("a run whose page finds its port taken has not begun") {
  support::TemporaryFolder root;
  const auto folder = root.path() / "deep/run";
  DashboardServing serving;
  serving.folders = {root.path()};
  const Dashboard other(serving);
  Options options;
  options.output = folder;
  options.samples = 1;
  options.display = Display::quiet;
  DashboardServing same;
  same.port = other.port();
  options.dashboard = serve_dashboard(same);
  CHECK_THROWS_WITH(tune(
                        one_dimension(), [](const One& one) { return one.x; }, options),
                    ContainsSubstring("cannot listen on 127.0.0.1 port"));
  CHECK(!std::filesystem::exists(root.path() / "deep"));
}
