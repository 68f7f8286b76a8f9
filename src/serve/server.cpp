#include "server.hpp"

#ifdef HYPERTUNE_NET_TLS
#include "net/serve_tls.hpp"
#include "net/tls.hpp"

#include <hypertune/net/bearer.hpp>
#include <hypertune/net/secret.hpp>
#endif

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/net/unread_request.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/version.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::serving {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using hypertune::detail::JsonWriter;

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

Server::Response response(int status, std::string body, std::string_view type = "application/json") {
  Server::Response reply(static_cast<http::status>(status), 11);
  reply.set(http::field::content_type, boost::beast::string_view(type.data(), type.size()));
  reply.body() = std::move(body);
  return reply;
}

Server::Response refusal(int status, std::string_view why) {
  JsonWriter out;
  out.begin_object().member("error", why).end_object();
  auto reply = response(status, out.take());
  if (status == 429 || status == 503) reply.set(http::field::retry_after, "1");
  return reply;
}

Server::Response wrong_method(const char* allowed) {
  auto reply = refusal(405, fmt::format("this resource takes {}", allowed));
  reply.set(http::field::allow, allowed);
  return reply;
}

asio::ip::tcp::endpoint endpoint_of(const ServeOptions& options) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.listen, error);
  if (error) fail(Errc::usage, "'{}' is no address to listen on: 127.0.0.1, or 0.0.0.0 for all", options.listen);
  return {address, options.port};
}

HttpLimits limits_of(const ServeOptions& options) {
  HttpLimits limits;
  limits.connections = options.max_connections;
  limits.body = options.max_body;
  limits.all = std::max<std::uint64_t>(std::uint64_t{256} << 20U, 8 * std::uint64_t{options.max_body});
  limits.head = 16 << 10;
  limits.request = std::chrono::milliseconds(static_cast<std::int64_t>(options.request_timeout * 1000));
  return limits;
}

constexpr double publish_seconds = 1;

const std::string version_text =
    fmt::format("{}.{}.{}", HYPERTUNE_VERSION_MAJOR, HYPERTUNE_VERSION_MINOR, HYPERTUNE_VERSION_PATCH);

/// How many bytes of the body are JSON, if the client says so.
std::optional<std::size_t> json_size(const Server::Request& request) {
  const auto found = request.find("Inference-Header-Content-Length");
  if (found == request.end()) return std::nullopt;
  const auto text = view(found->value());
  std::size_t size = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), size);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    fail(Errc::input, "the header Inference-Header-Content-Length must be a number of bytes, not '{}'",
         text.substr(0, 40));
  return size;
}

std::string_view state_of(const Rollout& rollout, const ModelVersion& version) {
  if (rollout.is_canary(version)) return "canary";
  switch (version.state()) {
    case ModelVersion::State::starting: return "starting";
    case ModelVersion::State::ready: return "ready";
    case ModelVersion::State::failed: return "failed";
    case ModelVersion::State::retired: return "retired";
  }
  return "unknown";
}

/// Whether one of its replicas runs.
bool answers(const std::shared_ptr<ModelVersion>& version) { return version && version->ready_replicas() > 0; }

/// Takes the next part of a path: "a" of "/a/b", of which "/b" is left.
std::string_view next_part(std::string_view& path) {
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  const auto part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

}  // namespace

#ifdef HYPERTUNE_NET_TLS
class Access {
 public:
  explicit Access(const ServeOptions& options)
      : token(options.token.empty() ? Secret::generate() : Secret::from_file(options.token)),
        identity(options.identity.empty() ? TlsIdentity::generate("serving", 365)
                                          : TlsIdentity::from_file(options.identity)),
        context(net::server_tls(identity, net::TlsPeers::browsers).release()) {}
  Secret token;
  TlsIdentity identity;
  asio::ssl::context context;
};
#else
class Access {
 public:
  explicit Access(const ServeOptions&) {
    fail(Errc::usage, "this hypertune was built without OpenSSL, and serves on loopback only");
  }
};
#endif

namespace {

std::unique_ptr<Access> access_of(const ServeOptions& options) {
  if (!endpoint_of(options).address().is_loopback()) return std::make_unique<Access>(options);
  if (!options.token.empty() || !options.identity.empty())
    fail(Errc::usage,
         "serve: a token and an identity are for --listen with an address beyond loopback: on loopback every user "
         "of this machine may ask");
  return nullptr;
}

}  // namespace

struct Server::Asked {
  std::shared_ptr<Pending> pending;
  bool plain = false;
  double begun = 0;
  /// A version that is looked for.
  struct Pin {
    explicit Pin(asio::io_context& io) : done(io) {}
    hypertune::detail::Wakeup done;
    std::string version;
    std::optional<std::string> trouble;
  };
  std::shared_ptr<Pin> pin;
};

Server::Server(std::string model, const ServeOptions& options, ReplicaStarter& starter,
               std::optional<InferenceRequest> validation)
    : model_(std::move(model)),
      options_(options),
      access_(access_of(options)),
      pinned_(options.pin),
      loop_(endpoint_of(options), fmt::format("{}:{}", options.listen, options.port), limits_of(options)),
      rollout_({loop_.context(), starter, options_, metrics_}, std::move(validation)) {
  names_.hosts.emplace_back("[::1]");
}

Server::~Server() { rollout_.close(); }

std::string Server::address() const {
  const bool six = options_.listen.find(':') != std::string::npos;
  return fmt::format("http{}://{}{}{}:{}", access_ ? "s" : "", six ? "[" : "", options_.listen, six ? "]" : "",
                     loop_.port());
}

#ifdef HYPERTUNE_NET_TLS
std::string Server::token() const { return access_ ? access_->token.reveal() : std::string(); }
std::string Server::fingerprint() const { return access_ ? access_->identity.fingerprint() : std::string(); }
#else
std::string Server::token() const { return {}; }
std::string Server::fingerprint() const { return {}; }
#endif

void Server::run() {
  loop_.start([this](boost::beast::tcp_stream stream) -> asio::awaitable<void> {
#ifdef HYPERTUNE_NET_TLS
    if (access_) return net::serve_tls(loop_, access_->context, std::move(stream), *this);
#endif
    return loop_.serve_plain(std::move(stream), *this);
  });
  loop_.run();
}

void Server::drain() {
  hypertune::detail::say("hypertune: requests under way are answered, then the server ends");
  loop_.drain(std::chrono::milliseconds(static_cast<std::int64_t>(options_.drain_grace * 1000)));
}

void Server::publish(std::filesystem::path file) {
  published_ = std::move(file);
  publish_again();
}

void Server::publish_again() {
  std::uint64_t all = 0;
  for (const auto& [code, count] : metrics_.requests) all += count;
  rate_ = static_cast<double>(all - std::exchange(counted_, all)) / publish_seconds;
  if (auto text = status(); text != published_text_) {
    // Not forced to the disk: it is of no use after a crash.
    const auto aside = published_.string() + ".new";
    std::error_code error;
    if (std::ofstream(aside) << text) std::filesystem::rename(aside, published_, error);
    if (!error) published_text_ = std::move(text);
  }
  publish_.expires_after(hypertune::detail::as_duration(publish_seconds));
  publish_.async_wait([this](const boost::system::error_code& error) {
    if (!error) publish_again();
  });
}

template <class Stream>
asio::awaitable<std::optional<Server::Response>> Server::answer(Stream&, Connection&, const Request& request) {
  Asked asked;
  std::optional<Response> reply = at_once(request, asked);
  if (!reply && asked.pin) {
    while (!asked.pin->trouble) co_await asked.pin->done.wait();
    reply = pinned(asked);
  } else if (!reply) {
    while (asked.pending->status == 0) co_await asked.pending->done.wait();
    reply = finished(asked);
  }
  co_return reply;
}

Server::Response Server::refusal_of(const boost::system::error_code& error) const {
  const auto [status, why] = hypertune::detail::unread_request(error, options_.max_body);
  return refusal(status, why);
}

std::optional<Server::Response> Server::refused(const Request& request) const {
#ifdef HYPERTUNE_NET_TLS
  if (access_) {
    if (hypertune::detail::bears_token(request, access_->token)) return std::nullopt;
    if (view(request.target()).starts_with("/v2/health/")) return std::nullopt;  // for probes
    auto reply = refusal(401, "this server needs its token: 'Authorization: Bearer TOKEN'");
    reply.set(http::field::www_authenticate, "Bearer");
    return reply;
  }
#endif
  if (const auto wrong = hypertune::detail::refused_origin(request, names_))
    return response(wrong->status, wrong->body);
  return std::nullopt;
}

// The answer, unless the model is asked: `asked.pending` is that.
std::optional<Server::Response> Server::at_once(const Request& request, Asked& asked) {
  try {
    return at_once_within(request, asked);
  } catch (const Error& error) {
    return counted(refusal(error.code() == Errc::input ? 400 : 500, error.what()));
  } catch (const std::bad_alloc&) { return counted(refusal(500, "there is no memory for the request")); }
}

std::optional<Server::Response> Server::at_once_within(const Request& request, Asked& asked) {
  if (auto reply = refused(request)) return reply;
  const auto target = view(request.target());
  std::string_view path = target.substr(0, target.find_first_of("?#"));
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  const bool posts = request.method() == http::verb::post;
  if (path == "/predict") return posts ? begin(request, asked, {}) : wrong_method("POST");
  if (path == "/serve/pin" || path == "/serve/rollback")
    return posts ? steer(request, path.substr(7), asked) : wrong_method("POST");
  if (path == "/metrics" || path == "/serve/status" || path == "/v2" || path == "/v2/" ||
      path.starts_with("/v2/health/")) {
    if (!reads) return wrong_method("GET");
    if (path == "/metrics")
      return response(200, prometheus_text(metrics_, gauges()), "text/plain; version=0.0.4; charset=utf-8");
    if (path == "/serve/status") return response(200, status());
    if (path == "/v2/health/live") return response(200, R"({"live":true})");
    if (path == "/v2/health/ready") {
      const bool ready = answers(rollout_.live()) && !loop_.draining();
      return response(ready ? 200 : 503, ready ? R"({"live":true,"ready":true})" : R"({"live":true,"ready":false})");
    }
    if (path.starts_with("/v2/health/")) return refusal(404, "there are /v2/health/live and /v2/health/ready");
    return response(
        200, fmt::format(R"({{"name":"hypertune","version":"{}","extensions":["binary_tensor_data"]}})", version_text));
  }
  if (next_part(path) != "v2" || next_part(path) != "models")
    return refusal(404, "there is nothing: see /v2/models/" + model_ + ", /predict, /metrics and /serve/status");
  const auto name = next_part(path);
  if (name != model_)
    return refusal(404, fmt::format("there is no model '{}': this is '{}'", name.substr(0, 100), model_));
  std::string_view wanted;
  if (path.starts_with("/versions/")) {
    next_part(path);
    wanted = next_part(path);
  }
  if (path == "/infer") return posts ? begin(request, asked, wanted) : wrong_method("POST");
  if (path == "/" || path.empty() || path == "/ready") {
    if (!reads) return wrong_method("GET");
    const auto chosen = wanted.empty() ? rollout_.live() : rollout_.choose(wanted);
    if (!wanted.empty() && !chosen) return refusal(404, fmt::format("there is no version '{}'", wanted.substr(0, 100)));
    if (path == "/ready") {
      JsonWriter out;
      out.begin_object().member("name", model_).member("ready", answers(chosen)).end_object();
      return response(answers(chosen) ? 200 : 503, out.take());
    }
    if (!chosen) return refusal(503, "no version of the model is ready yet");
    return response(200, metadata_of(*chosen));
  }
  return refusal(404, "a model has /infer, /ready and, itself, its metadata");
}

std::optional<Server::Response> Server::begin(const Request& request, Asked& asked, std::string_view wanted) {
  asked.begun = hypertune::detail::steady_seconds();
  const auto version = rollout_.choose(wanted);
  if (!version) {
    if (!wanted.empty()) return counted(refusal(404, fmt::format("there is no version '{}'", wanted.substr(0, 100))));
    return counted(refusal(503, "no version of the model is ready yet"));
  }
  const auto encoding = request.find(http::field::content_encoding);
  if (encoding != request.end() && !hypertune::detail::same_name(encoding->value(), "identity"))
    return counted(refusal(415, fmt::format("a body in the encoding '{}' is not read: send it uncompressed",
                                            view(encoding->value()).substr(0, 40))));
  asked.plain = view(request.target()).starts_with("/predict");
  asked.pending = std::make_shared<Pending>(loop_.context());
  if (asked.plain) {
    if (!version->signature())
      return counted(refusal(400, "the model does not say what it takes: use /v2/models/" + model_ + "/infer"));
    asked.pending->request = decode_plain(request.body(), *version->signature());
  } else {
    asked.pending->request = decode_request(request.body(), json_size(request));
  }
  version->add(asked.pending);
  return std::nullopt;
}

Server::Response Server::finished(Asked& asked) {
  try {
    return finish(asked);
  } catch (const Error& error) { return counted(refusal(error.code() == Errc::input ? 400 : 500, error.what())); }
}

Server::Response Server::finish(Asked& asked) {
  Pending& pending = *asked.pending;
  if (pending.status != 200) return counted(refusal(pending.status, pending.error));
  metrics_.latency.add(hypertune::detail::steady_seconds() - asked.begun);
  Response reply;
  if (asked.plain) {
    reply = response(200, encode_plain(pending.outputs));
  } else {
    InferenceAnswer answer{std::move(pending.request.id), model_, pending.version, std::move(pending.outputs)};
    Encoded encoded = encode_answer(answer, pending.request);
    const bool binary = encoded.binary();
    const std::size_t json = encoded.json;
    reply = response(200, std::move(encoded.bytes), binary ? "application/octet-stream" : "application/json");
    if (binary) reply.set("Inference-Header-Content-Length", std::to_string(json));
  }
  reply.set("Hypertune-Version", pending.version);
  return counted(std::move(reply));
}

Server::Response Server::counted(Response reply) {
  ++metrics_.requests[static_cast<int>(reply.result_int())];
  return reply;
}

std::optional<Server::Response> Server::steer(const Request& request, std::string_view what, Asked& asked) {
  if (what == "rollback") {
    const std::string name = rollout_.roll_back();
    if (name.empty()) return refusal(409, "there is no version to go back to");
    pinned_ = name;
    pin(name, {});
    JsonWriter out;
    out.begin_object().member("pinned", name).end_object();
    return response(200, out.take());
  }
  const auto body = hypertune::detail::parse_json(request.body());
  const auto* object = body ? body->if_object() : nullptr;
  const auto* given = object != nullptr ? hypertune::detail::value_in(*object, "version") : nullptr;
  if (given == nullptr || (!given->is_string() && !given->is_null()))
    return refusal(400, R"(give {"version": "TRIAL-STEPS"}, or {"version": null} for the best one)");
  asked.pin = std::make_shared<Asked::Pin>(loop_.context());
  if (given->is_string()) asked.pin->version = std::string(given->get_string());
  pin(asked.pin->version, [wanted = asked.pin](const std::string& trouble) {
    wanted->trouble = trouble;
    wanted->done.raise();
  });
  return std::nullopt;
}

Server::Response Server::pinned(Asked& asked) {
  if (!asked.pin->trouble->empty()) return refusal(404, *asked.pin->trouble);
  pinned_ = asked.pin->version;
  JsonWriter out;
  out.begin_object().key("pinned");
  if (pinned_.empty())
    out.value(nullptr);
  else
    out.value(pinned_);
  out.end_object();
  return response(202, out.take());
}

void Server::give_up_pin() {
  if (pinned_.empty() || !rollout_.live() || rollout_.rejection().empty() || rollout_.rejected() != pinned_) return;
  pinned_ = rollout_.live()->files().version;
  if (pin) pin(pinned_, {});
}

std::string Server::metadata_of(const ModelVersion& version) const {
  JsonWriter out;
  out.begin_object().member("name", model_).key("versions").begin_array().value(version.files().version).end_array();
  out.member("platform", "hypertune");
  std::string text = out.take();
  text += ",";
  text += encode_signature(version.signature().value_or(Signature()));
  return text + "}";
}

std::string Server::status() const {
  JsonWriter out;
  out.begin_object().member("model", model_).member("address", address()).key("live");
  if (rollout_.live())
    out.value(rollout_.live()->files().version);
  else
    out.value(nullptr);
  out.member("pinned", pinned_).member("previous", rollout_.previous()).member("rejection", rollout_.rejection());
  out.key("versions").begin_array();
  for (const auto& one : rollout_.all()) {
    const auto& files = one->files();
    out.begin_object().member("version", files.version).member("state", state_of(rollout_, *one));
    out.member("trial", files.info.trial).member("steps", files.info.steps);
    if (files.value) out.member("metric", files.value->metric).member("value", files.value->value);
    out.member("replicas", one->ready_replicas()).member("wanted", one->wanted());
    out.member("queued", one->waiting()).member("ongoing", one->ongoing());
    out.member("answered", one->answered()).member("failed", one->failed()).end_object();
  }
  out.end_array().key("requests").begin_object();
  for (const auto& [code, count] : metrics_.requests) out.member(std::to_string(code), count);
  out.end_object();
  out.member("requests_per_second", rate_);
  out.member("p50_seconds", metrics_.latency.quantile(0.5)).member("p99_seconds", metrics_.latency.quantile(0.99));
  out.member("swaps", metrics_.swaps).member("replicas_lost", metrics_.replicas_lost).end_object();
  return out.take();
}

Gauges Server::gauges() const {
  Gauges found;
  found.model = model_;
  for (const auto& one : rollout_.all())
    found.versions.push_back({one->files().version, std::string(state_of(rollout_, *one)), one->ready_replicas(),
                              one->waiting(), one->ongoing()});
  found.connections = const_cast<hypertune::detail::HttpLoop&>(loop_).open().size();
  return found;
}

}  // namespace hypertune::inline v0::serving
