// A client that sends requests at times that are fixed beforehand, whenever the answers come: an open loop.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace open_loop {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// When requests are to be sent: in bursts of `size`, each in `spread` seconds on average.
inline std::vector<double> trace(double rate, int size, double spread, double seconds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(1);
  std::vector<double> all;
  for (double t = 0; (t += gap(random) * size / rate) < seconds;) {
    double in_burst = t;
    for (int i = 0; i < size; ++i, in_burst += spread / size * gap(random)) all.push_back(in_burst);
  }
  std::sort(all.begin(), all.end());
  return all;
}

struct Answer {
  double due = 0, sent = 0, took = 0;  // seconds: after the beginning; until it was sent, and answered
  int status = 0;
};

/// Sends requests when they are due, on any connection that is free; those that find none wait for one.
class Client {
 public:
  Client(std::uint16_t port, std::size_t connections, const std::string& target, const std::string& body)
      : request_(fmt::format("POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n"
                             "Content-Length: {}\r\n\r\n{}",
                             target, port, body.size(), body)) {
    for (std::size_t i = 0; i < connections; ++i) {
      auto& one = *all_.emplace_back(std::make_unique<Connection>(io_));
      one.socket.connect({asio::ip::address_v4::loopback(), port});
      one.socket.set_option(tcp::no_delay(true));
      one.socket.non_blocking(true);
      free_.push_back(&one);
      read(one);
    }
  }
  std::vector<Answer> run(const std::vector<double>& due) {
    answers_.assign(due.size(), {});
    for (std::size_t i = 0; i < due.size(); ++i) answers_[i].due = due[i];
    begin_ = Clock::now() + std::chrono::milliseconds(10);
    wait();
    io_.run();
    return std::move(answers_);
  }

 private:
  struct Connection {
    explicit Connection(asio::io_context& io) : socket(io) {}
    tcp::socket socket;
    std::array<char, 4096> piece{};
    std::string in;
    std::size_t number = 0;  // of its request
  };
  double now() const { return Seconds(Clock::now() - begin_).count(); }

  void wait() {
    if (next_ == answers_.size()) return;
    timer_.expires_at(begin_ + std::chrono::duration_cast<Clock::duration>(Seconds(answers_[next_].due)));
    timer_.async_wait([this](const boost::system::error_code&) {
      while (next_ < answers_.size() && answers_[next_].due <= now()) waiting_.push_back(next_++);
      send();
      wait();
    });
  }
  void send() {
    for (; !waiting_.empty() && !free_.empty(); waiting_.pop_front(), free_.pop_back()) {
      Connection& one = *free_.back();
      one.number = waiting_.front();
      answers_[one.number].sent = now() - answers_[one.number].due;
      if (one.socket.write_some(asio::buffer(request_)) != request_.size()) std::abort();  // it is small
    }
  }
  void read(Connection& one) {
    one.socket.async_read_some(asio::buffer(one.piece), [&](const boost::system::error_code& error, std::size_t bytes) {
      if (error == asio::error::operation_aborted) return;
      if (error) throw boost::system::system_error(error, "the server has closed a connection");
      one.in.append(one.piece.data(), bytes);
      if (complete(one.in)) answered(one);
      if (done_ == answers_.size()) return io_.stop();
      read(one);
    });
  }
  static bool complete(const std::string& in) {
    const auto head = in.find("\r\n\r\n");
    const auto size = in.find("Content-Length: ");
    return head != std::string::npos && size < head &&
           in.size() >= head + 4 + std::strtoul(in.c_str() + size + 16, nullptr, 10);
  }
  void answered(Connection& one) {
    Answer& answer = answers_[one.number];
    answer.took = now() - answer.due;
    answer.status = std::atoi(one.in.c_str() + 9);
    one.in.clear();
    free_.push_back(&one);
    ++done_;
    send();
  }

  std::string request_;
  asio::io_context io_{1};
  asio::steady_timer timer_{io_};
  std::vector<std::unique_ptr<Connection>> all_;
  std::vector<Connection*> free_;
  std::deque<std::size_t> waiting_;
  std::vector<Answer> answers_;
  std::size_t next_ = 0, done_ = 0;
  Clock::time_point begin_;
};

}  // namespace open_loop
