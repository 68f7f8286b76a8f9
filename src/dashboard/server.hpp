// Server: the page and its answers over HTTP.
#pragma once

#include "api.hpp"

#include <hypertune/serve/browser_rules.hpp>
#include <hypertune/serve/open_connections.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// How long a server waits for its clients, and how many it serves at a time.
struct ServerLimits {
  int connections = 256;                      ///< at a time; above this an idle one is closed for a new one
  int streams = 128;                          ///< connections with event streams, at a time
  std::chrono::milliseconds first{10'000};    ///< from accepting a connection to the end of its first request
  std::chrono::milliseconds idle{120'000};    ///< between requests
  std::chrono::milliseconds request{10'000};  ///< from the first byte of a request to its last
  std::chrono::milliseconds answer{30'000};   ///< until a client has received its answer, or an event
  std::chrono::milliseconds alive{15'000};    ///< between keep-alive comments on an event stream
  std::chrono::milliseconds events{250};      ///< between two events of an experiment
  std::uint32_t head = 128 << 10;             ///< bytes of a request's address and headers
};

/// Decides who may make requests, if not everyone on this machine may.
class Gate {
 public:
  virtual ~Gate() = default;
  using Request = boost::beast::http::request<boost::beast::http::empty_body>;
  using Response = boost::beast::http::response<boost::beast::http::string_body>;
  /// Returns an answer to send instead of the requested one; nullopt: proceed.
  virtual std::optional<Response> refuse(const Request& request) = 0;
};

/// Encrypts connections: TLS, for a server beyond loopback. Without one, plain TCP.
class Encryption;

class Server {
 public:
  Server(const Api& api, boost::asio::ip::tcp::endpoint endpoint, ServerNames names, ServerLimits limits = {},
         Gate* gate = nullptr, Encryption* encryption = nullptr);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  std::uint16_t port() const { return port_; }
  void start();
  void stop();
  /// Reports that an experiment has changed, or with "" that some were added or removed. May be called from any thread.
  void tell(const std::string& id);

 private:
  using Request = Gate::Request;
  using Response = Gate::Response;
  friend class Encryption;

  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve_plain(boost::beast::tcp_stream stream);
  template <class Stream>
  boost::asio::awaitable<void> serve(Stream& stream, detail::OpenConnections::Connection& connection);
  template <class Stream>
  boost::asio::awaitable<bool> write(Stream& stream, Response& reply);
  template <class Stream>
  boost::asio::awaitable<void> serve_events(Stream& stream, std::string only);
  boost::asio::awaitable<Response> answered(const Request& request);
  boost::asio::awaitable<std::string> news_since(std::uint64_t seen, std::string only);

  Response handle(const Request& request) const;
  Response response(int status, std::string body, std::string_view type = "application/json") const;
  Response refusal_of(const boost::system::error_code& error) const;
  std::optional<Response> refused(const Request& request) const;

  const Api& api_;
  ServerNames names_;
  ServerLimits limits_;
  Gate* gate_;
  Encryption* encryption_;
  std::uint16_t port_ = 0;
  detail::OpenConnections open_{&room_};       // before the members whose destructors end the remaining connections
  std::map<std::string, std::uint64_t> news_;  // by experiment: the value of told_ at its latest change
  std::uint64_t told_ = 0;
  std::list<boost::asio::steady_timer*> listeners_;  // event streams that wait for news
  int streams_ = 0;
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer room_;
  boost::asio::thread_pool workers_;
  std::thread thread_;
};

}  // namespace hypertune::inline v0::dashboard
