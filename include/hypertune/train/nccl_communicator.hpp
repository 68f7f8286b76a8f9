// Collectives over NCCL, for data in the memory of GPUs. This header includes none of CUDA's or NCCL's; link
// hypertune::train_cuda.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

struct NcclOptions {
  /// As cudaSetDevice() counts: within CUDA_VISIBLE_DEVICES. A thread that has another current device gets it back
  /// after each call, unless the process has not used that one: then the thread keeps this one.
  int device = 0;
  void* stream = nullptr;  ///< what comes first where an operation has no `after`; null: the default stream
  /// Bytes of pinned memory, and as many of the device, through which buffers in host memory go, piece by piece. They
  /// are allocated once: an allocation may wait for the whole device, where another rank's collective waits for this
  /// one.
  std::size_t staging = std::size_t{4} << 20U;
  /// What failed or was aborted is revoked in place of aborted, where NCCL can (2.28.7), so that regroup() has
  /// something to go on from. It has been seen with the tests' stand-in for NCCL only, hence off.
  bool revoke = false;
  std::string name = "nccl";  ///< of the keys at the Rendezvous: another for a second communicator of one generation
};

namespace detail {
class NcclGroup;
}

/// A CommunicatorBackend. Copies are the same communicator. The ranks are threads or processes, each with a device of
/// its own; NCCL_MULTI_RANK_GPU_ENABLE=1 in the environment lets several ranks that are processes share one (an
/// experiment of NCCL's, 2.30 and newer; they compete for its multiprocessors, and a rank that waits for the device in
/// its own code can wait forever).
///
/// Buffers are in the memory of `device`, or all of a collective's are in host memory on all ranks: those are copied.
///
/// A collective's time begins when those before it are done and this rank's stream has come to it. A stream that does
/// not come to it for `timeout` seconds, as a kernel in it does not end, is an error, too: this rank is late then, and
/// the others name it. Nothing can end such a kernel. So where the device is not done within another `timeout` (1 s at
/// least, 30 s at most), the error says that the device is still busy: until it is not, collectives may write to those
/// of their buffers that are in its memory, and only then what the communicator has there is given back, by a thread of
/// the process. Buffers in host memory are always the caller's again.
///
/// A collective is no part of a graph: one after a stream that is being captured is an Error of kind `usage`, and
/// leaves the communicator as it was. Graphs may be captured while collectives are under way.
class NcclCommunicator {
 public:
  /// Returns when all ranks of the generation are there, or throws a GroupError within about 1.5 times the timeout.
  /// The Rendezvous outlives the communicator. Error of kind `resources` where there is no such device.
  static NcclCommunicator connect(const GroupPlace& place, Rendezvous& rendezvous,
                                  const CommunicatorOptions& options = {}, const NcclOptions& nccl = {});

  /// The communicator of the next generation, made out of this one where that is possible: ranks that left are taken
  /// out (ncclCommShrink, 2.27.3), or new ones are put behind (ncclCommGrow, 2.29.2; those call connect()); else
  /// afresh. Rank 0 decides, so that all do the same. This one is of no use then.
  NcclCommunicator regroup(const GroupPlace& next, Rendezvous& rendezvous);

  /// The same as a Communicator.
  Communicator communicator() const { return Communicator(std::make_unique<NcclCommunicator>(*this)); }

  int rank() const;
  int size() const;
  std::string name() const { return "nccl"; }
  /// How regroup() or connect() made it: "fresh", "shrunk" or "grown".
  std::string origin() const;

  void perform(const collective::Operation& operation);
  /// Waits for nothing: the end of what is under way is the performing thread's to wait for.
  void abort(const GroupError& why);

  /// See PipelinedBackend. Operations on host memory are done when they are in the queue.
  std::function<std::function<bool()>()> prepare(const collective::Operation& operation);

  /// perform() in two halves, for buffers of the device: start() returns when NCCL has it in its queue. Several may be
  /// started; finish() waits for all. Not for who uses a Communicator made of this.
  void start(const collective::Operation& operation);
  void finish();
  /// Makes the stream (a cudaStream_t) wait for what was started.
  void order(void* stream);

 private:
  explicit NcclCommunicator(std::shared_ptr<detail::NcclGroup> group) : group_(std::move(group)) {}
  std::shared_ptr<detail::NcclGroup> group_;
};

/// NcclCommunicator::connect() for who does not regroup.
inline Communicator connect_nccl(const GroupPlace& place, Rendezvous& rendezvous,
                                 const CommunicatorOptions& options = {}, const NcclOptions& nccl = {}) {
  return NcclCommunicator::connect(place, rendezvous, options, nccl).communicator();
}

}  // namespace hypertune::inline v0
