// Server: the Open Inference Protocol and plain JSON over HTTP, for the versions of one model.
#pragma once

#include "rollout.hpp"

#include <hypertune/net/browser_rules.hpp>
#include <hypertune/net/http_loop.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::serving {

/// What a client beyond loopback needs. Without OpenSSL there is none.
class Access;

class Server {
 public:
  using Request = hypertune::detail::HttpRequest;
  using Response = hypertune::detail::HttpResponse;

  Server(std::string model, const ServeOptions& options, ReplicaStarter& starter,
         std::optional<InferenceRequest> validation);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// "http://127.0.0.1:1234"
  std::string address() const;
  /// For clients: the token, and the certificate's fingerprint; empty on loopback.
  std::string token() const;
  std::string fingerprint() const;

  Rollout& rollout() { return rollout_; }
  boost::asio::io_context& context() { return loop_.context(); }
  /// Called with the version that is to be pinned; "": the best again. If `found` is given, the version is to be looked for
  /// and offered, and `found(trouble)` called on the thread of the context; trouble is empty if there is such a version.
  using Found = std::function<void(const std::string& trouble)>;
  std::function<void(const std::string& version, Found found)> pin;
  /// If the pinned version was rejected, the live one is pinned instead.
  void give_up_pin();

  /// Serves until stop(), or until drain() is done.
  void run();
  void stop() { loop_.stop(); }
  void drain();
  /// Writes its status into this file, each second if it has changed.
  void publish(std::filesystem::path file);

 private:
  friend class hypertune::detail::HttpLoop;
  using Connection = hypertune::detail::HttpLoop::Connection;

  template <class Stream>
  boost::asio::awaitable<std::optional<Response>> answer(Stream& stream, Connection& connection,
                                                         const Request& request);
  Response refusal_of(const boost::system::error_code& error) const;

  struct Asked;
  std::optional<Response> refused(const Request& request) const;
  std::optional<Response> at_once(const Request& request, Asked& asked);
  std::optional<Response> at_once_within(const Request& request, Asked& asked);
  std::optional<Response> begin(const Request& request, Asked& asked, std::string_view version);
  Response finished(Asked& asked);
  Response finish(Asked& asked);
  Response counted(Response response);
  std::optional<Response> steer(const Request& request, std::string_view what, Asked& asked);
  Response pinned(Asked& asked);
  std::string metadata_of(const ModelVersion& version) const;
  std::string status() const;
  Gauges gauges() const;
  void publish_again();

  std::string model_;
  ServeOptions options_;
  std::unique_ptr<Access> access_;
  ServerNames names_;
  Metrics metrics_;
  std::string pinned_;
  std::filesystem::path published_;
  std::string published_text_;
  std::uint64_t counted_ = 0;  // requests answered until the last time that it was published
  double rate_ = 0;            // requests a second since then
  hypertune::detail::HttpLoop loop_;
  boost::asio::steady_timer publish_{loop_.context()};
  Rollout rollout_;  // after the loop: its timers are of its context
};

}  // namespace hypertune::inline v0::serving
