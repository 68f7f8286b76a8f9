// One connection of a CheckpointServer: receives requests and sends answers.
#pragma once

#include "compression.hpp"
#include "served_checkpoints.hpp"
#include "wire.hpp"

#include <hypertune/checkpoint/transfer/server.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace hypertune::inline v0::detail {

/// What all connections of a server share.
struct ServerShared {
  ServerShared(CheckpointServerOptions o)
      : options(std::move(o)),
        checkpoints(options.stores),
        bucket(options.shared_rate ? options.shared_rate : std::make_shared<TokenBucket>(options.rate_limit)),
        compressors(4) {}

  const CheckpointServerOptions options;
  ServedCheckpoints checkpoints;
  const std::shared_ptr<TokenBucket> bucket;
  TokenBucket& rate = *bucket;
  CompressorPool compressors;
  Alarm stop;  // set: no further requests
  Alarm cut;   // set: running answers are cut off
  std::atomic<std::uint64_t> requests{0}, refused{0}, bytes_sent{0};
};

/// Answers requests on `wire` until either side ends the connection. `authenticated` is called after a peer's first
/// valid request; `idle` with whether the connection waits for a request.
void handle_requests(ServerShared& server, Wire& wire, const std::function<void()>& authenticated,
                     const std::function<void(bool)>& idle);

}  // namespace hypertune::inline v0::detail
