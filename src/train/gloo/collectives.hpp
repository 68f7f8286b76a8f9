// Collectives by the sends and receives of Gloo's transport.
#pragma once

#include "group.hpp"

#include <hypertune/train/communicator.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The backend of connect_gloo(). It does not use Gloo's own algorithms: a wait in them ends only with Gloo's timeout,
/// and the error does not say which rank they waited for.
///
/// Each rank reduces its part of the data, received from all others. This needs the fewest dependent steps, every
/// element is reduced by one rank in the order of ranks, and 16-bit floats are rounded once. With many ranks, large
/// all-reduces use a ring, so that a host communicates with two neighbours at a time instead of all.
class GlooCommunicator {
 public:
  GlooCommunicator(GlooLinks links, int rank, int size, const CommunicatorOptions& options)
      : busy_loop_(links.busy_loop), group_(std::move(links), rank, size, options.timeout) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  std::string name() const { return "gloo"; }
  void perform(const collective::Operation& operation);
  void abort(const GroupError& why) { group_.fail_with(why); }

  /// The number of ranks from which on large all-reduces use the ring.
  void set_ring_from(int ranks) { ring_from_ = ranks; }

 private:
  /// Memory for received data, reused by later operations.
  struct Scratch {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
    std::unique_ptr<GlooBuffer> buffer;  ///< declared after its memory, so that it is destroyed first
  };
  GlooBuffer& scratch(GlooOperation& operation, std::size_t which, std::size_t bytes);

  void run(GlooOperation& operation, const collective::AllReduce& what);
  void run(GlooOperation& operation, const collective::Broadcast& what);
  void run(GlooOperation& operation, const collective::AllGather& what);
  void run(GlooOperation& operation, const collective::ReduceScatter& what);
  void run(GlooOperation& operation, const collective::Barrier& what);

  void reduce_small(GlooOperation& operation, const collective::AllReduce& what);
  void reduce_by_parts(GlooOperation& operation, const collective::AllReduce& what);
  void reduce_by_ring(GlooOperation& operation, const collective::AllReduce& what);

  std::shared_ptr<GlooBusyLoop> busy_loop_;  ///< destroyed last: the buffers keep the device alive
  int ring_from_ = 9;
  std::vector<Scratch> scratch_{2};
  GlooGroup group_;  ///< destroyed first: after that Gloo no longer uses the memory above
};

}  // namespace hypertune::inline v0::detail
