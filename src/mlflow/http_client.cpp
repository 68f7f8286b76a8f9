#include "http_client.hpp"

#include <hypertune/error.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#ifdef HYPERTUNE_MLFLOW_TLS
#include <boost/asio/ssl.hpp>
#include <boost/beast/ssl.hpp>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace hypertune::inline v0::detail::mlflow {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
constexpr std::uint64_t largest_answer = 64U << 20U;

}  // namespace

Address::Address(const std::string& uri) {
  std::string_view rest = uri;
  tls = rest.starts_with("https://");
  if (!tls && !rest.starts_with("http://"))
    fail(Errc::usage, "'{}' is no address of an MLflow server: write it as http://localhost:5000", uri);
#ifndef HYPERTUNE_MLFLOW_TLS
  if (tls) fail(Errc::usage, "'{}': this hypertune was built without OpenSSL, which https needs", uri);
#endif
  rest.remove_prefix(tls ? 8 : 7);
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view place = rest.substr(0, slash);
  path = rest.substr(slash);
  while (path.ends_with('/')) path.pop_back();
  port = tls ? "443" : "80";
  const auto bracket = place.rfind(']');  // [::1]:5000
  const auto colon = place.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    port = place.substr(colon + 1);
    place = place.substr(0, colon);
  }
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  host = place;
  const bool numeric = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (host.empty() || !numeric || uri.find_first_of(" \r\n\t@?#") != std::string::npos)
    fail(Errc::usage, "'{}' is no address of an MLflow server: write it as http://localhost:5000", uri);
}

struct HttpClient::Connection {
  asio::io_context context{1};
  beast::tcp_stream stream{context};
  // Bounded, because the parser's own limit holds for the head alone.
  beast::flat_buffer buffer{std::size_t{64} << 10U};
#ifdef HYPERTUNE_MLFLOW_TLS
  std::optional<asio::ssl::context> trust;
  std::optional<beast::ssl_stream<beast::tcp_stream&>> tls;
#endif

  /// Starts an operation and runs it to its end; the stream's time limit ends it at the latest.
  template <class Start>
  void run(const char* what, const Start& start) {
    error_code result;
    start([&result](error_code error, auto&&...) { result = error; });
    context.restart();
    context.run();
    if (result) throw Unreachable(fmt::format("{}: {}", what, result.message()));
  }

  template <class Use>
  void with_stream(const Use& use) {
#ifdef HYPERTUNE_MLFLOW_TLS
    if (tls) return use(*tls);
#endif
    use(stream);
  }

  void open(const Address& address) {
    asio::ip::tcp::resolver resolver(context);
    asio::ip::tcp::resolver::results_type found;
    run("its name is not known", [&](auto done) {
      resolver.async_resolve(address.host, address.port, [&found, done](error_code error, auto results) mutable {
        found = std::move(results);
        done(error);
      });
    });
    run("cannot connect", [&](auto done) { stream.async_connect(found, done); });
#ifdef HYPERTUNE_MLFLOW_TLS
    if (!address.tls) return;
    trust.emplace(asio::ssl::context::tls_client);
    trust->set_default_verify_paths();
    trust->set_verify_mode(asio::ssl::verify_peer);
    tls.emplace(stream, *trust);
    tls->set_verify_callback(asio::ssl::host_name_verification(address.host));
    SSL_set_tlsext_host_name(tls->native_handle(), address.host.c_str());
    run("no TLS", [&](auto done) { tls->async_handshake(asio::ssl::stream_base::client, done); });
#endif
  }
};

HttpClient::HttpClient(Address address, std::string authorization)
    : address_(std::move(address)), authorization_(std::move(authorization)) {}
HttpClient::~HttpClient() = default;

Answer HttpClient::request(std::string_view target, const std::string& body, std::chrono::milliseconds limit) {
  http::request<http::string_body> request{body.empty() ? http::verb::get : http::verb::post,
                                           address_.path + std::string(target), 11};
  const bool literal = address_.host.find(':') != std::string::npos;
  request.set(http::field::host,
              fmt::format("{}:{}", literal ? "[" + address_.host + "]" : address_.host, address_.port));
  request.set(http::field::user_agent, "hypertune");
  request.set(http::field::accept, "application/json");
  if (!authorization_.empty()) request.set(http::field::authorization, authorization_);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  // The server may close an idle connection at the moment it is reused: then try once more with a new one.
  for (const bool reused : {connection_ != nullptr, false}) {
    try {
      const bool fresh = connection_ == nullptr;
      if (fresh) connection_ = std::make_unique<Connection>();
      connection_->stream.expires_after(limit);
      if (fresh) connection_->open(address_);
      http::response_parser<http::string_body> parser;
      parser.body_limit(largest_answer);
      connection_->with_stream([&](auto& stream) {
        connection_->run("the request broke off", [&](auto done) { http::async_write(stream, request, done); });
        connection_->run("no answer", [&](auto done) { http::async_read(stream, connection_->buffer, parser, done); });
      });
      Answer answer{parser.get().result_int(), std::move(parser.get().body())};
      if (!parser.keep_alive()) connection_.reset();
      return answer;
    } catch (const Unreachable&) {
      connection_.reset();
      if (!reused) throw;
    }
  }
  throw Unreachable("no answer");
}

}  // namespace hypertune::inline v0::detail::mlflow
