// CheckpointTransfer: how checkpoints are transferred between hosts and driver.
#pragma once

#include <hypertune/detail/network_text.hpp>
#include <hypertune/option.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::inline v0 {

/// A folder on a disk that this machine and the hosts share (NFS, a parallel file system).
struct SharedCheckpoints {
  /// The path on this machine; empty: the experiment's own folder. In another folder each experiment gets a folder of
  /// its own, to which `trials/<id>/checkpoints` in the experiment's folder then lead. This is for experiments whose
  /// journal is better on a local disk.
  std::filesystem::path folder = {};
  /// The path on the hosts: absolute, or below their home ("~/runs"); empty: the same as on this machine.
  std::string on_hosts = {};
};

/// Copies of checkpoints are sent over the connection of each host, by content: if a checkpoint has much in common with
/// an earlier one, only the new content is sent, and an interrupted transfer continues where it ended. This needs
/// hypertune::transfer at both ends (OpenSSL and zstd, when hypertune is built); without it, checkpoints are sent
/// whole.
struct CheckpointTransfer {
  static constexpr const char* type = "transfer";

  bool by_content = true;
  std::uint64_t inline_limit = std::uint64_t{128}
                               << 10U;  ///< bytes: smaller ones are sent whole, which saves round trips
  /// Bytes per second of checkpoints that each host may send, and the driver to all hosts together; 0: no limit.
  std::uint64_t rate_limit = 0;
  /// Hosts fetch checkpoints directly from each other, if a population-based schedule makes trials take them over: by
  /// TLS, with a certificate of each agent's own and a token that is new in each run. Each agent then listens on one
  /// port. If that fails, the checkpoints go through the driver. By default nothing listens anywhere.
  bool direct = false;
  /// The network whose addresses they use ("10.1.0.0/16"); empty: the address at which ssh reached the host.
  std::string network = {};
  std::uint16_t port = 0;  ///< to listen on; 0: any free one
  /// Hosts write checkpoints to this folder, once, and read them there: nothing is copied. Each host must first prove
  /// that it has the same disk. A notice names the hosts that have not, and their checkpoints are copied. What a host
  /// writes counts only after this machine has moved it to its place, so that nothing written by a lost host ever
  /// counts.
  std::optional<SharedCheckpoints> shared = {};

  static void describe(auto& self, auto&& option) {
    option("by_content", self.by_content, "copies only the parts of a checkpoint that differ from the last one");
    option("direct", self.direct, "hosts fetch checkpoints from one another (TLS, a token new in each run)");
    option("network", self.network, "with `direct`: `10.1.0.0/16`, the addresses used between hosts");
    option("rate_limit", self.rate_limit, at_least(0).in(Bounds::Unit::bytes),
           "bytes a second of each sender; 0: no limit");
    option("port", self.port, between(1, 65535).without_default(), "with `direct`: where hosts listen");
    option("shared", self.shared, "a disk that hosts and this machine have: nothing is copied");
  }
  void check() const {
    if (!direct && !(network.empty() && port == 0))
      throw OptionError(type, "direct", "is false, but there is a network or a port, which only 'direct: true' uses");
    if (direct && !by_content) throw OptionError(type, "direct", "needs 'by_content'");
    if (!network.empty() && !detail::parse_network(network))
      throw OptionError(type, "network",
                        detail::format("is '{}', which is no network: write it as 10.1.0.0/16", network));
  }
};

}  // namespace hypertune::inline v0
