// Server: the page and its answers over HTTP.
#pragma once

#include "api.hpp"

#include <hypertune/net/browser_rules.hpp>
#include <hypertune/net/event_stream.hpp>
#include <hypertune/net/http_loop.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// The limits of the page's clients.
struct ServerLimits : HttpLimits {
  ServerLimits()
      : HttpLimits{.first = std::chrono::seconds(10),
                   .idle = std::chrono::seconds(120),
                   .request = std::chrono::seconds(10),
                   .head = 64 << 10,
                   .body = 0} {}
  int streams = 128;                        ///< connections with event streams, at a time
  std::chrono::milliseconds alive{15'000};  ///< between keep-alive comments on an event stream
  std::chrono::milliseconds events{250};    ///< between two events of an experiment
};

/// Decides who may make requests, if not everyone on this machine may.
class Gate {
 public:
  virtual ~Gate() = default;
  using Request = hypertune::detail::HttpRequest;
  using Response = hypertune::detail::HttpResponse;
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

  std::uint16_t port() const { return loop_.port(); }
  void start();
  void stop();
  /// Reports that an experiment has changed, or with "" that some were added or removed. May be called from any thread.
  void notify(const std::string& id);

 private:
  using Request = Gate::Request;
  using Response = Gate::Response;
  using Connection = hypertune::detail::HttpLoop::Connection;
  friend class hypertune::detail::HttpLoop;

  template <class Stream>
  boost::asio::awaitable<std::optional<Response>> answer(Stream& stream, Connection& connection,
                                                         const Request& request);
  template <class Stream>
  boost::asio::awaitable<void> serve_events(hypertune::detail::EventStream<Stream>& events, std::string only);
  boost::asio::awaitable<Response> answered(const Request& request);
  boost::asio::awaitable<std::string> changes_since(std::uint64_t seen, std::string only);

  Response handle(const Request& request) const;
  Response response(int status, std::string body, std::string_view type = "application/json") const;
  Response refusal_of(const boost::system::error_code& error) const;
  std::optional<Response> refused(const Request& request) const;

  const Api& api_;
  ServerNames names_;
  ServerLimits limits_;
  Gate* gate_;
  Encryption* encryption_;
  std::map<std::string, std::uint64_t> changes_;  // by experiment: the value of change_count_ at its latest change
  std::uint64_t change_count_ = 0;
  std::list<hypertune::detail::Wakeup*> listeners_;  // of the event streams
  hypertune::detail::HttpLoop loop_;                 // after what its connections use
  boost::asio::thread_pool workers_;
  std::thread thread_;
};

}  // namespace hypertune::inline v0::dashboard
