#include "server.hpp"

#include "gzip.hpp"
#include "page_files.hpp"
#include "server_impl.hpp"

#include <hypertune/detail/signal_block.hpp>
#include <hypertune/net/unread_request.hpp>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hypertune::inline v0::dashboard {

namespace asio = boost::asio;

namespace {

// Once for each worker's thread, so that the experiment itself runs first.
void lower_priority() {
  [[maybe_unused]] static thread_local const int done = ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 5);
}

}  // namespace

Server::Server(const Api& api, asio::ip::tcp::endpoint endpoint, ServerNames names, ServerLimits limits, Gate* gate,
               Encryption* encryption)
    : api_(api),
      names_(std::move(names)),
      limits_(limits),
      gate_(gate),
      encryption_(encryption),
      loop_(endpoint, fmt::format("{} port {}", endpoint.address().to_string(), endpoint.port()), limits),
      workers_(2) {}

Server::~Server() { stop(); }

void Server::start() {
  const hypertune::detail::SignalBlock block;
  loop_.start([this](boost::beast::tcp_stream stream) {
    return encryption_ == nullptr ? loop_.serve_plain(std::move(stream), *this)
                                  : serve_encrypted(*this, loop_, *encryption_, std::move(stream));
  });
  thread_ = std::thread([this] { loop_.run(); });
}

void Server::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
  workers_.stop();
  workers_.join();
}

void Server::notify(const std::string& id) {
  asio::post(loop_.context(), [this, id] {
    changes_[id] = ++change_count_;
    if (changes_.size() > 10'000) changes_.clear();  // drops ids of experiments that no longer exist
    for (auto* listener : listeners_) listener->raise();
  });
}

Server::Response Server::response(int status, std::string body, std::string_view type) const {
  namespace http = boost::beast::http;
  Response reply(static_cast<http::status>(status), 11);
  set_common_headers(reply);
  reply.set(http::field::content_type, boost::beast::string_view(type.data(), type.size()));
  reply.body() = std::move(body);
  return reply;
}

void set_common_headers(Gate::Response& reply) {
  namespace http = boost::beast::http;
  reply.set("Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.set("X-Content-Type-Options", "nosniff");
  reply.set("Referrer-Policy", "no-referrer");
  reply.set("Cross-Origin-Opener-Policy", "same-origin");
  reply.set("Cross-Origin-Resource-Policy", "same-origin");
  reply.set(http::field::cache_control, "no-store");
}

// The answer to a malformed HTTP request.
Server::Response Server::refusal_of(const boost::system::error_code& error) const {
  const auto [status, why] = hypertune::detail::unread_request(error, loop_.limits().body);
  return response(status, fmt::format(R"({{"error":"{}"}})", why));
}

std::optional<Server::Response> Server::refused(const Request& request) const {
  namespace http = boost::beast::http;
  if (const auto refusal = hypertune::detail::refused_origin(request, names_))
    return response(refusal->status, refusal->body);
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    auto reply = response(405, R"({"error":"this server is only read from: GET, nothing else"})");
    reply.set(http::field::allow, "GET, HEAD");
    return reply;
  }
  return std::nullopt;
}

Server::Response Server::handle(const Request& request) const {
  namespace http = boost::beast::http;
  const auto raw = request.target();
  const std::string_view target(raw.data(), raw.size());
  const auto encodings = request[http::field::accept_encoding];
  const bool gzip = std::string_view(encodings.data(), encodings.size()).find("gzip") != std::string_view::npos;
  if (target.starts_with("/api/")) {
    HttpAnswer answer = api_.answer(target);
    const bool pack = gzip && answer.body.size() > 4096;
    auto reply = response(answer.status, pack ? gzipped(answer.body) : std::move(answer.body));
    if (pack) reply.set(http::field::content_encoding, "gzip");
    reply.set(http::field::vary, "Accept-Encoding");
    return reply;
  }
  const PageFile* file = find_page_file(target.substr(0, target.find_first_of("?#")));
  if (file == nullptr) return response(404, R"({"error":"there is no such page"})");
  auto plain =
      gzip ? std::optional<std::string>(std::string(file->gzip)) : gunzipped(file->gzip, std::size_t{64} << 20);
  auto reply = response(200, plain ? std::move(*plain) : std::string(), file->type);
  if (gzip) reply.set(http::field::content_encoding, "gzip");
  reply.set(http::field::vary, "Accept-Encoding");
  return reply;
}

asio::awaitable<Server::Response> Server::answered(const Request& request) {
  lower_priority();
  co_return handle(request);
}

asio::awaitable<std::string> Server::changes_since(std::uint64_t seen, std::string only) {
  std::vector<std::string> ids;
  std::string text;
  for (const auto& [id, at] : changes_) {
    if (at <= seen) continue;
    if (id.empty())
      text += "event: experiments\ndata: {}\n\n";
    else if (only.empty() || id == only)
      ids.push_back(id);
  }
  auto making = texts_of(api_, std::move(ids));
  const std::string changes = co_await asio::co_spawn(workers_, std::move(making), asio::use_awaitable);
  text += changes;
  co_return text;
}

std::string experiment_of(const std::string& target) {
  try {
    return view::Query(target).text("experiment");
  } catch (const Error&) { return {}; }
}

asio::awaitable<std::string> texts_of(const Api& api, std::vector<std::string> ids) {
  lower_priority();
  std::string text;
  for (const auto& id : ids)
    if (const std::string data = api.changed(id); !data.empty()) text += "event: changed\ndata: " + data + "\n\n";
  co_return text;
}

}  // namespace hypertune::inline v0::dashboard
