// The connections of one rank to all others: Gloo's transport, found by a Rendezvous.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <memory>

namespace hypertune::inline v0::detail {

/// For waits whose limit is somebody else's: Gloo's own, when it passes, closes all connections.
inline constexpr std::chrono::milliseconds gloo_unlimited = std::chrono::hours(24 * 365);

using GlooBuffer = gloo::transport::UnboundBuffer;

/// Gloo's thread looks after its descriptors every 10 ms where nothing comes, and whoever makes or closes a connection
/// waits until it does, each time. While one of these is raised, it looks all the time.
class GlooWaker {
 public:
  explicit GlooWaker(gloo::transport::Device& device);
  GlooWaker(const GlooWaker&) = delete;
  GlooWaker& operator=(const GlooWaker&) = delete;
  ~GlooWaker();
  void raise() const;
  void lower() const;

 private:
  int fd_ = -1;
};

struct GlooLinks {
  std::shared_ptr<GlooWaker> waker = {};                   ///< of the device: it goes after that
  std::shared_ptr<gloo::transport::Device> device = {};    ///< has the thread that reads and writes
  std::shared_ptr<gloo::transport::Context> context = {};  ///< has a connection for each other rank

  /// Closes all connections; what was written before still arrives. What waits for them throws.
  void close() const;
};

/// Connected when this returns on all ranks, or on none: a rank that fails is named on the others.
GlooLinks link_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options);

}  // namespace hypertune::inline v0::detail
