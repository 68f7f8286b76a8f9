// Makes an experiment of many trials, opens a Dashboard on it, and says when it answered, how large, and in what
// memory.
#include "generate.hpp"

#include <hypertune/show/dashboard.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string get(std::uint16_t port, const std::string& target) {
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), port});
  asio::write(socket, asio::buffer("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  std::string text;
  boost::system::error_code error;
  asio::read(socket, asio::dynamic_buffer(text), error);
  return text.substr(std::min(text.size(), text.find("\r\n\r\n") + 4));
}

std::string memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS")) return line.substr(6);
  return "?";
}

}  // namespace

// benchmark_dashboard [--make] FOLDER [TRIALS [REPORTS]]     --make: the experiment alone
int main(int argc, char** argv) {
  const bool make = argc > 1 && std::string_view(argv[1]) == "--make";
  if (make) {
    --argc;
    ++argv;
  }
  const std::filesystem::path folder = argc > 1 ? argv[1] : "/tmp/hypertune-benchmark-dashboard";
  benchmark::Shape shape;
  if (argc > 2) shape.trials = std::atoll(argv[2]);
  if (argc > 3) shape.reports = std::atoi(argv[3]);
  if (!std::filesystem::exists(folder / "experiment.db")) {
    const auto begin = Clock::now();
    benchmark::generate(folder, shape);
    fmt::print("written in {:.1f} s\n", since(begin));
  }
  if (make) return 0;
  const auto begin = Clock::now();
  hypertune::Dashboard dashboard({.folders = {folder}});
  std::string summary;
  while ((summary = get(dashboard.port(), "/api/summary")).find("\"counts\"") == std::string::npos) {}
  fmt::print("first summary after {:.3f} s\n", since(begin));
  const auto best = get(dashboard.port(), "/api/best");
  fmt::print("first best so far after {:.3f} s, {} bytes\n", since(begin), best.size());
  while ((summary = get(dashboard.port(), "/api/summary")).find("\"reading\"") != std::string::npos) {}
  fmt::print("all read after {:.2f} s; memory {}\n", since(begin), memory());
  for (const char* target : {"/api/summary", "/api/best", "/api/best?x=time", "/api/trials?sort=value&order=desc",
                             "/api/trials?sort=params.lr", "/api/curves",
                             "/api/points?fields=params.lr,params.hidden,params.optimizer,value", "/api/importance",
                             "/api/edf", "/api/timeline", "/api/now", "/api/rungs", "/api/trial?trial=5",
                             "/api/trials?filter=lr%3C0.001+optimizer%3Dadam"}) {
    const auto asked = Clock::now();
    const auto answer = get(dashboard.port(), target);
    fmt::print("{:60} {:8.1f} ms {:9} bytes\n", target, since(asked) * 1000, answer.size());
  }
  fmt::print("memory {}\n", memory());
}
