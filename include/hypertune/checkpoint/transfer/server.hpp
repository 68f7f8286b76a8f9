// CheckpointServer: gives an experiment's checkpoints to other nodes, over HTTP.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/checkpoint/transfer/secret.hpp>
#include <hypertune/checkpoint/transfer/tls_identity.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// No address: peers come by CheckpointServer::serve() alone.
struct Unlistened {};

struct CheckpointServerOptions {
  std::vector<LocalCheckpointStore> stores;  ///< of one experiment; the first that has a checkpoint gives it
  /// A unix socket is made for its owner alone. An address beyond loopback is refused without a token.
  std::variant<UnixSocket, Tcp, Unlistened> listen = Tcp{};
  Secret token = {};                              ///< what peers must show; empty: none
  std::optional<TlsIdentity> tls = {};            ///< nullopt: no TLS
  std::uint64_t rate_limit = 0;                   ///< bytes per second, of all connections together; 0: none
  std::shared_ptr<TokenBucket> shared_rate = {};  ///< instead: a limit for several servers, and what else, together
  bool compress = true;                           ///< by zstd, where a sample says that it saves time on this link
  int max_connections = 512;                      ///< more are turned away
  int max_strangers = 64;  ///< of these, how many may not have shown a valid request yet; the oldest gives way
  std::chrono::milliseconds request_timeout{10'000};  ///< for a whole request (and the TLS handshake) to arrive
  std::chrono::milliseconds idle_timeout{120'000};    ///< between two requests
  std::chrono::milliseconds stall_timeout{30'000};    ///< for a peer that takes nothing of an answer
  std::chrono::milliseconds stop_grace{2'000};        ///< for answers under way when it is stopped
};

/// Read-only; works on threads of its own from the constructor on. Members are thread-safe. Needs hypertune::transfer.
///
///     ht::CheckpointServer server({.stores = {store}, .listen = ht::UnixSocket{path}, .token = token});
///     ht::Endpoint where = server.endpoint();   // for fetch_checkpoint() on another node, with the same token
class CheckpointServer {
 public:
  struct Counters {
    std::uint64_t connections = 0;  ///< accepted so far
    std::uint64_t open = 0;         ///< now
    std::uint64_t requests = 0;     ///< answered
    std::uint64_t refused = 0;      ///< answered with an error, or cut off for what they sent
    std::uint64_t bytes_sent = 0;   ///< of content, as they went over the wire
  };

  /// Listens. Error of kind `usage` (options that cannot be) or `io` (the address is taken or refused).
  explicit CheckpointServer(CheckpointServerOptions options);
  CheckpointServer(const CheckpointServer&) = delete;
  CheckpointServer& operator=(const CheckpointServer&) = delete;
  ~CheckpointServer();  ///< stop()

  /// Serves whoever is at the other end of a connected stream socket, which it owns from here on, as if they had
  /// connected by themselves.
  void serve(int socket);

  /// Where it listens (Unlistened: nowhere), with the port that was chosen, the certificate's fingerprint and the
  /// token.
  const Endpoint& endpoint() const;

  void set_rate_limit(std::uint64_t bytes_per_second);

  /// Has a checkpoint's chunks computed ahead, so that the first peer that has an earlier one need not wait. Returns at
  /// once; no error if it is gone.
  void prepare(const CheckpointInfo& info);

  Counters counters() const;

  /// Takes no more requests, gives answers under way their grace, then cuts them off. Idempotent.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hypertune::inline v0
