// A bare HTTP server: Beast's own example http_server_async, with one thread and a constant answer.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace hypertune::benchmark {

inline boost::beast::http::response<boost::beast::http::string_body> constant_answer() {
  namespace http = boost::beast::http;
  http::response<http::string_body> answer(http::status::ok, 11);
  answer.set(http::field::content_type, "application/json");
  answer.body() = R"({"model_name":"digits","outputs":[{"name":"y","shape":[1],"datatype":"FP32","data":[0.5]}]})";
  return answer;
}

class BareSession : public std::enable_shared_from_this<BareSession> {
 public:
  explicit BareSession(boost::asio::ip::tcp::socket socket) : stream_(std::move(socket)) {}
  void read() {
    request_ = {};
    stream_.expires_after(std::chrono::seconds(30));
    boost::beast::http::async_read(stream_, buffer_, request_,
                                   boost::beast::bind_front_handler(&BareSession::answer, shared_from_this()));
  }

 private:
  void answer(boost::beast::error_code error, std::size_t) {
    if (error) return;
    answer_ = constant_answer();
    answer_.keep_alive(request_.keep_alive());
    answer_.prepare_payload();
    boost::beast::http::async_write(stream_, answer_,
                                    boost::beast::bind_front_handler(&BareSession::written, shared_from_this()));
  }
  void written(boost::beast::error_code error, std::size_t) {
    if (!error && answer_.keep_alive()) read();
  }
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  boost::beast::http::response<boost::beast::http::string_body> answer_;
};

class Bare {
 public:
  explicit Bare(std::uint16_t port = 0) : acceptor_(context_, {boost::asio::ip::address_v4::loopback(), port}) {
    accept();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void run() { context_.run(); }
  void stop() { context_.stop(); }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::beast::error_code error, boost::asio::ip::tcp::socket socket) {
      if (!error) std::make_shared<BareSession>(std::move(socket))->read();
      accept();
    });
  }
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
};

}  // namespace hypertune::benchmark
