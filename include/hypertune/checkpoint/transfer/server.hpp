// CheckpointServer: serves an experiment's checkpoints to other nodes over HTTP.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>
#include <hypertune/net/secret.hpp>
#include <hypertune/net/tls_identity.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// No address: connections come only from CheckpointServer::serve().
struct Unlistened {};

struct CheckpointServerOptions {
  std::vector<LocalCheckpointStore> stores;  ///< of one experiment; the first that has a checkpoint serves it
  /// Only its owner can use a unix socket. An address beyond loopback is refused without a token.
  std::variant<UnixSocket, Tcp, Unlistened> listen = Tcp{};
  Secret token = {};                              ///< what peers must show; empty: none
  std::optional<TlsIdentity> tls = {};            ///< nullopt: no TLS
  std::uint64_t rate_limit = 0;                   ///< bytes per second, for all connections together; 0: no limit
  std::shared_ptr<TokenBucket> shared_rate = {};  ///< instead: a limit shared with other servers and transfers
  bool compress = true;                           ///< by zstd, if a sample shows that it saves time on this link
  int max_connections = 512;                      ///< further ones are refused
  int max_unauthenticated = 64;  ///< of these, those that may not have sent a valid request yet; the oldest is closed
  std::chrono::milliseconds request_timeout{10'000};  ///< for a whole request (and the TLS handshake) to arrive
  std::chrono::milliseconds idle_timeout{120'000};    ///< between two requests
  std::chrono::milliseconds stall_timeout{30'000};    ///< for a peer that accepts nothing of an answer
  std::chrono::milliseconds stop_grace{2'000};        ///< for running answers when the server is stopped
};

/// Read-only. Runs its own threads from its construction on. Members are thread-safe. Needs hypertune::transfer.
///
///     ht::CheckpointServer server({.stores = {store}, .listen = ht::UnixSocket{path}, .token = token});
///     ht::Endpoint where = server.endpoint();   // for fetch_checkpoint() on another node, with the same token
class CheckpointServer {
 public:
  struct Counters {
    std::uint64_t connections = 0;  ///< accepted so far
    std::uint64_t open = 0;         ///< now
    std::uint64_t requests = 0;     ///< answered
    std::uint64_t refused = 0;      ///< answered with an error, or disconnected because of what they sent
    std::uint64_t bytes_sent = 0;   ///< of content, as sent over the wire
  };

  /// Listens. Error of kind `usage` (invalid options) or `io` (the address is taken or refused).
  explicit CheckpointServer(CheckpointServerOptions options);
  CheckpointServer(const CheckpointServer&) = delete;
  CheckpointServer& operator=(const CheckpointServer&) = delete;
  ~CheckpointServer();  ///< stop()

  /// Serves the peer at the other end of a connected stream socket as if it had connected by itself. The server then
  /// owns the socket.
  void serve(int socket);

  /// Where it listens (Unlistened: nowhere), with the actual port, the certificate's fingerprint and the token.
  const Endpoint& endpoint() const;

  void set_rate_limit(std::uint64_t bytes_per_second);

  /// Has a checkpoint's chunks computed in advance, so that the first peer that has an earlier checkpoint need not
  /// wait. Returns at once; no error if the checkpoint is gone.
  void prepare(const CheckpointInfo& info);

  Counters counters() const;

  /// Accepts no more requests, gives running answers their grace time, then cuts them off. Idempotent.
  void stop();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0
