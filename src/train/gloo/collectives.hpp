// Collectives by sends and receives of Gloo's transport.
#pragma once

#include "group.hpp"

#include <hypertune/train/communicator.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The backend of connect_gloo(). Gloo's own algorithms would do for the data; but their waits, once begun, end only
/// with Gloo's timeout, whose error does not say whom they waited for.
///
/// All send to all, with each rank the one that reduces its part: the fewest steps that depend on each other, every
/// element is reduced by one rank in the order of ranks, and 16-bit floats are rounded once. With many ranks the data
/// of large all-reduces goes round a ring: so a host has two neighbours to talk to at a time, not all.
class GlooCommunicator {
 public:
  GlooCommunicator(GlooLinks links, int rank, int size, const CommunicatorOptions& options)
      : waker_(links.waker), group_(std::move(links), rank, size, options.timeout) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  std::string name() const { return "gloo"; }
  void perform(const collective::Operation& operation);
  void abort(const GroupError& why) { group_.fail_with(why); }

  /// From so many ranks on, large all-reduces go by the ring.
  void set_ring_from(int ranks) { ring_from_ = ranks; }

 private:
  /// Memory for what comes in, kept for the next operation.
  struct Scratch {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
    std::unique_ptr<GlooBuffer> buffer;  ///< after its memory: it goes first
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

  std::shared_ptr<GlooWaker> waker_;  ///< goes last: the buffers' memory holds the device
  int ring_from_ = 9;
  std::vector<Scratch> scratch_{2};
  GlooGroup group_;  ///< goes first: its end is the end of all that Gloo does with the memory above
};

}  // namespace hypertune::inline v0::detail
