#include "protection.hpp"

#include "server_impl.hpp"

#ifdef HYPERTUNE_DASHBOARD_TLS

#include "net/serve_tls.hpp"
#include "net/tls.hpp"

#include <hypertune/net/bearer.hpp>

#include <mutex>
#include <optional>

namespace hypertune::inline v0::dashboard {

namespace asio = boost::asio;

class Encryption {
 public:
  explicit Encryption(const TlsIdentity& identity)
      : context(net::server_tls(identity, net::TlsPeers::browsers).release()) {}
  asio::ssl::context context;
};

asio::awaitable<void> serve_encrypted(Server& server, hypertune::detail::HttpLoop& loop, Encryption& encryption,
                                      boost::beast::tcp_stream stream) {
  co_await net::serve_tls(loop, encryption.context, std::move(stream), server);
}

namespace {

namespace http = boost::beast::http;

constexpr std::string_view cookie_name = "__Host-hypertune=";

class TokenGate : public Gate {
 public:
  explicit TokenGate(Secret token) : token_(std::move(token)), key_(Secret::generate()), session_(Secret::generate()) {}

  std::string entry() const { return "/enter?key=" + key_.reveal(); }

  std::optional<Response> refuse(const Request& request) override {
    const std::string target(request.target());
    if (target.starts_with("/enter?")) return enter(target);
    if (hypertune::detail::bears_token(request, token_) || bears_cookie(request)) return std::nullopt;
    auto reply = answer(http::status::unauthorized,
                        R"({"error":"this page needs its token: open the link that hypertune dashboard printed, once, )"
                        R"(or send 'Authorization: Bearer TOKEN'"})");
    reply.set(http::field::www_authenticate, "Bearer");
    return reply;
  }

 private:
  static Response answer(http::status status, std::string text) {
    Response reply(status, 11);
    set_common_headers(reply);
    reply.set(http::field::content_type, "application/json");
    reply.body() = std::move(text);
    return reply;
  }

  Response enter(const std::string& target) {
    std::string given;
    try {
      given = view::Query(target).text("key");
    } catch (const Error&) {}  // treated as a wrong key
    const std::lock_guard guard(mutex_);
    if (used_ || !key_.matches(given))
      return answer(
          http::status::forbidden,
          R"({"error":"this link has been used, or is wrong: start hypertune dashboard again for a new one"})");
    used_ = true;
    auto reply = answer(http::status::see_other, "{}");
    reply.set(http::field::location, "/");
    reply.set(http::field::set_cookie, std::string(cookie_name) + session_.reveal() +
                                           "; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=86400");
    return reply;
  }

  bool bears_cookie(const Request& request) const {
    if (request.count(http::field::cookie) != 1) return false;
    const auto raw = request[http::field::cookie];
    for (const auto& part : view::split(std::string_view(raw.data(), raw.size()), ';')) {
      std::string_view cookie = part;
      while (cookie.starts_with(' ')) cookie.remove_prefix(1);
      if (cookie.starts_with(cookie_name) && session_.matches(cookie.substr(cookie_name.size()))) return true;
    }
    return false;
  }

  Secret token_, key_, session_;
  std::mutex mutex_;
  bool used_ = false;
};

}  // namespace

class Protection::State {
 public:
  State(const std::filesystem::path& identity_file, const std::filesystem::path& token_file)
      : identity(identity_file.empty() ? TlsIdentity::generate("dashboard", 30)
                                       : TlsIdentity::from_file(identity_file)),
        fingerprint(identity.fingerprint()),
        encryption(identity),
        gate(token_file.empty() ? Secret::generate() : Secret::from_file(token_file)) {}
  TlsIdentity identity;
  std::string fingerprint;
  Encryption encryption;
  TokenGate gate;
};

Protection::Protection(const std::filesystem::path& identity, const std::filesystem::path& token)
    : state_(std::make_unique<State>(identity, token)) {}
Protection::~Protection() = default;
Gate& Protection::gate() { return state_->gate; }
Encryption& Protection::encryption() { return state_->encryption; }
const std::string& Protection::fingerprint() const { return state_->fingerprint; }
std::string Protection::entry() const { return state_->gate.entry(); }

}  // namespace hypertune::inline v0::dashboard

#else

namespace hypertune::inline v0::dashboard {

class Encryption {};
class Protection::State {};
boost::asio::awaitable<void> serve_encrypted(Server&, hypertune::detail::HttpLoop&, Encryption&,
                                             boost::beast::tcp_stream) {
  co_return;
}
Protection::Protection(const std::filesystem::path&, const std::filesystem::path&) {
  fail(Errc::usage,
       "this hypertune was built without OpenSSL, and serves a dashboard on loopback only: leave --listen away, and "
       "forward the port by ssh -L");
}
Protection::~Protection() = default;
Gate& Protection::gate() { std::abort(); }
Encryption& Protection::encryption() { std::abort(); }
const std::string& Protection::fingerprint() const { std::abort(); }
std::string Protection::entry() const { return {}; }

}  // namespace hypertune::inline v0::dashboard

#endif
