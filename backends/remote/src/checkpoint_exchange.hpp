// CheckpointExchange: serving and fetching checkpoints by content, if hypertune::transfer is available.
#pragma once

#include "tunnel.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/transfer/fetch.hpp>
#include <hypertune/checkpoint/transfer/server.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/network.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// The result of a fetch: a report or an error.
struct FetchOutcome {
  std::optional<FetchReport> report;
  std::string error;
  std::vector<std::string> without;  // peers that could not provide it
};

#ifdef HYPERTUNE_REMOTE_TRANSFER

inline constexpr bool can_exchange = true;

/// This machine's address in a network like "10.1.0.0/16". Without a network: `known`, HYPERTUNE_HOST_ADDRESS or
/// loopback. Error of kind `usage` if there is none.
inline std::string own_address(const std::string& network, const std::string& known) {
  if (network.empty()) {
    if (!known.empty()) return known;
    const char* given = std::getenv("HYPERTUNE_HOST_ADDRESS");
    return given != nullptr && *given != '\0' ? given : "127.0.0.1";
  }
  const auto range = hypertune::detail::parse_network(network);
  if (!range) fail(Errc::usage, "'{}' is no network: write it as 10.1.0.0/16", network);
  if (auto address = hypertune::detail::own_address_in(*range)) return *address;
  fail(Errc::usage, "no address of this machine is in the network {}", network);
}

/// One side of an exchange: a server of a store, and fetches into it. Members are thread-safe.
class CheckpointExchange {
 public:
  /// Starts serving, only to peers behind tunnels.
  CheckpointExchange(const LocalCheckpointStore& store, const std::string& token, std::shared_ptr<TokenBucket> rate)
      : store_(store),
        token_(token),
        rate_(std::move(rate)),
        server_({.stores = {store},
                 .listen = Unlistened{},
                 .token = token_,
                 .shared_rate = rate_,
                 .stop_grace = std::chrono::milliseconds(0)}) {}

  /// Also accepts other hosts. Returns the endpoint for them. Throws an Error if the address is not available.
  std::string listen(const std::string& network, std::uint16_t port, const std::string& known) {
    direct_ = std::make_unique<CheckpointServer>(
        CheckpointServerOptions{.stores = {store_},
                                .listen = Tcp{.address = own_address(network, known), .port = port},
                                .token = token_,
                                .tls = TlsIdentity::generate("hypertune"),
                                .shared_rate = rate_,
                                .stop_grace = std::chrono::milliseconds(0)});
    return direct_->endpoint().to_string();
  }

  /// For Tunnel::accept().
  void serve(int socket) { server_.serve(socket); }

  /// Fetches from the other side of a tunnel.
  FetchReport fetch(const std::shared_ptr<Tunnel>& tunnel, const std::string& name, const CheckpointInfo& info,
                    std::stop_token stop) {
    Endpoint from;
    from.address = Connector{.connect = [tunnel] { return tunnel->connect(); }, .name = name};
    from.token = token_;
    FetchOptions options;
    options.streams = 1;  // several would share the one connection
    options.retries = 2;
    options.stall_timeout = std::chrono::minutes(5);  // a lost connection is detected by its heartbeat
    return fetch_checkpoint(from, info, store_, options, std::move(stop));
  }
  /// Fetches directly from another host.
  FetchReport fetch(const std::string& endpoint, const std::string& content_id, const CheckpointInfo& info,
                    std::stop_token stop) {
    Endpoint from = Endpoint::parse(endpoint);
    if (from.certificate.empty()) fail(Errc::protocol, "'{}' has no certificate", endpoint);
    from.token = token_;
    FetchOptions options;
    options.retries = 2;
    options.connect_timeout = std::chrono::seconds(3);
    options.stall_timeout = std::chrono::seconds(5);  // there is an alternative source
    options.content_id = content_id;
    return fetch_checkpoint(from, info, store_, options, std::move(stop));
  }

  void drop_partial(TrialId trial) { drop_partial_fetches(store_, trial, std::chrono::seconds(0)); }
  std::string content_id(const CheckpointInfo& info, std::stop_token stop) {
    return hypertune::content_id(store_, info, std::move(stop));
  }
  static std::string new_token() { return Secret::generate().reveal(); }

  void stop() {
    server_.stop();
    if (direct_) direct_->stop();
  }

 private:
  LocalCheckpointStore store_;
  const Secret token_;
  const std::shared_ptr<TokenBucket> rate_;
  CheckpointServer server_;
  std::unique_ptr<CheckpointServer> direct_;
};

#else

inline constexpr bool can_exchange = false;

/// Without the library; never constructed, because neither side announces that it can exchange.
class CheckpointExchange {
 public:
  CheckpointExchange(const LocalCheckpointStore&, const std::string&, const std::shared_ptr<TokenBucket>&) { absent(); }
  std::string listen(const std::string&, std::uint16_t, const std::string&) { absent(); }
  void serve(int) {}
  FetchReport fetch(const std::shared_ptr<Tunnel>&, const std::string&, const CheckpointInfo&, std::stop_token) {
    absent();
  }
  FetchReport fetch(const std::string&, const std::string&, const CheckpointInfo&, std::stop_token) { absent(); }
  void drop_partial(TrialId) {}
  std::string content_id(const CheckpointInfo&, std::stop_token) { return {}; }
  static std::string new_token() { return {}; }
  void stop() {}

 private:
  [[noreturn]] static void absent() { fail(Errc::usage, "hypertune::remote was built without hypertune::transfer"); }
};

#endif

}  // namespace hypertune::inline v0::remote::detail
