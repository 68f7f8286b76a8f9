// CheckpointTransfer: how checkpoints travel between hosts and driver.
#pragma once

#include <cstdint>
#include <string>

namespace hypertune::ssh {

/// Copies of checkpoints go through the connection of each host by content: of one that has much in common with an
/// earlier one, only what is new moves, and one that was cut off goes on where it ended. That needs hypertune::transfer
/// at both ends (OpenSSL and zstd, when hypertune is built); without it they go whole.
struct CheckpointTransfer {
  bool by_content = true;
  std::uint64_t whole = std::uint64_t{128} << 10U;  ///< bytes: shorter ones are sent whole, which saves round trips
  /// Bytes per second of checkpoints that each host may send, and the driver to all of them; 0: no limit. What is sent
  /// whole does not count.
  std::uint64_t rate_limit = 0;
  /// Hosts fetch checkpoints of others, as a population-based schedule has them take over, from one another: by TLS
  /// with a certificate of each agent's own, and a token that is new in each run. Each agent then listens on one port.
  /// Where that fails, they come through the driver. By default nothing listens anywhere.
  bool direct = false;
  /// The network whose addresses they use ("10.1.0.0/16"); empty: the address by which ssh reached the host.
  std::string network = {};
  std::uint16_t port = 0;  ///< to listen on; 0: any free one
};

}  // namespace hypertune::ssh
