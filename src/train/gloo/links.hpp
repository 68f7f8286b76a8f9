// The connections of one rank to all others: Gloo's transport, set up by a Rendezvous.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <memory>

namespace hypertune::inline v0::detail {

/// For waits with a limit that is handled elsewhere: when Gloo's own limit passes, it closes all connections.
inline constexpr std::chrono::milliseconds gloo_unlimited = std::chrono::hours(24 * 365);

using GlooBuffer = gloo::transport::UnboundBuffer;

/// Gloo's thread checks its descriptors only every 10 ms if no data arrives, and opening or closing a connection waits
/// for that each time. Between start() and stop() of a GlooBusyLoop, the thread checks continuously.
class GlooBusyLoop {
 public:
  explicit GlooBusyLoop(gloo::transport::Device& device);
  GlooBusyLoop(const GlooBusyLoop&) = delete;
  GlooBusyLoop& operator=(const GlooBusyLoop&) = delete;
  ~GlooBusyLoop();
  void start() const;
  void stop() const;

 private:
  int fd_ = -1;
};

struct GlooLinks {
  std::shared_ptr<GlooBusyLoop> busy_loop = {};            ///< belongs to the device and is destroyed after it
  std::shared_ptr<gloo::transport::Device> device = {};    ///< has the thread that reads and writes
  std::shared_ptr<gloo::transport::Context> context = {};  ///< has a connection for each other rank

  /// Closes all connections; data that was written before still arrives. Waits on them throw.
  void close() const;
};

/// Returns on all ranks when all are connected, or throws on all ranks: a rank that fails is named on the others.
GlooLinks link_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options);

}  // namespace hypertune::inline v0::detail
