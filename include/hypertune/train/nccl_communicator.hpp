// Collectives by NCCL, for data in the memory of GPUs. This header includes none of CUDA's or NCCL's headers; link
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
  /// Numbered as for cudaSetDevice(): within CUDA_VISIBLE_DEVICES. After each call the thread's previous current device
  /// is restored, unless the process has not used that one: then `device` stays current.
  int device = 0;
  void* stream = nullptr;  ///< work that precedes operations without `after`; null: the default stream
  /// Size in bytes of the pinned memory, and of as much device memory, through which buffers in host memory are copied
  /// piece by piece. Both are allocated once: an allocation may wait for the whole device, and with it for a collective
  /// of another rank that waits for this one.
  std::size_t staging = std::size_t{4} << 20U;
  /// Revoke failed or aborted communicators instead of aborting them, if NCCL can (2.28.7), so that regroup() can
  /// continue from them. Off, because it was tested only with the tests' substitute for NCCL.
  bool revoke = false;
  std::string name = "nccl";  ///< prefix of the Rendezvous keys; another one for a second communicator of a generation
};

namespace detail {
class NcclGroup;
}

/// A CommunicatorBackend. Copies are the same communicator. The ranks are threads or processes, each with a device of
/// its own. With NCCL_MULTI_RANK_GPU_ENABLE=1 in the environment several ranks that are processes can share a device
/// (an experimental feature of NCCL 2.30 and newer; they compete for its multiprocessors, and a rank that waits for the
/// device in its own code can wait forever).
///
/// The buffers of a collective must be in the memory of `device`, or in host memory on all ranks; the latter are
/// copied.
///
/// The timeout of a collective begins when the operations before it are done and this rank's stream has reached it. If
/// the stream does not reach it within `timeout` seconds, because a kernel in it does not end, this is an error, too:
/// this rank is late, and the others name it. Such a kernel cannot be ended. If the device is not done within another
/// `timeout` (at least 1 s, at most 30 s), the error says that the device is still busy. Until it is done, collectives
/// may write to their buffers in device memory; the communicator's resources on the device are released after that, by
/// a thread of the process. Buffers in host memory belong to the caller again in any case.
///
/// Collectives cannot be part of a CUDA graph: one after a stream that is being captured is an Error of kind `usage`
/// that leaves the communicator unchanged. Graphs may be captured while collectives are running.
class NcclCommunicator {
 public:
  /// Returns when all ranks of the generation have connected, or throws a GroupError within about 1.5 times the
  /// timeout. The Rendezvous must outlive the communicator. Error of kind `resources` if there is no such device.
  static NcclCommunicator connect(const GroupPlace& place, Rendezvous& rendezvous,
                                  const CommunicatorOptions& options = {}, const NcclOptions& nccl = {});

  /// The communicator of the next generation. It is made from this one if possible: ranks that left are removed
  /// (ncclCommShrink, 2.27.3), or new ranks are added behind the others (ncclCommGrow, 2.29.2; the new ranks call
  /// connect()). Otherwise it is made afresh. Rank 0 decides, so that all do the same. This one is unusable afterwards.
  NcclCommunicator regroup(const GroupPlace& next, Rendezvous& rendezvous);

  /// This communicator as a Communicator.
  Communicator communicator() const { return Communicator(std::make_unique<NcclCommunicator>(*this)); }

  int rank() const;
  int size() const;
  std::string name() const { return "nccl"; }
  /// How regroup() or connect() made it: "fresh", "shrunk" or "grown".
  std::string origin() const;

  void perform(const collective::Operation& operation);
  /// Does not wait: the performing thread waits for the end of running operations.
  void abort(const GroupError& why);

  /// See PipelinedBackend. Operations on host memory are already done when they are in the queue.
  std::function<std::function<bool()>()> prepare(const collective::Operation& operation);

  /// perform() in two halves, for buffers in device memory: start() returns when NCCL has the operation in its queue.
  /// Several operations may be started; finish() waits for all. Must not be combined with a Communicator made from
  /// this.
  void start(const collective::Operation& operation);
  void finish();
  /// Makes the stream (a cudaStream_t) wait for the started operations.
  void order(void* stream);

 private:
  explicit NcclCommunicator(std::shared_ptr<detail::NcclGroup> group) : group_(std::move(group)) {}
  std::shared_ptr<detail::NcclGroup> group_;
};

/// NcclCommunicator::connect() for callers that do not regroup.
inline Communicator connect_nccl(const GroupPlace& place, Rendezvous& rendezvous,
                                 const CommunicatorOptions& options = {}, const NcclOptions& nccl = {}) {
  return NcclCommunicator::connect(place, rendezvous, options, nccl).communicator();
}

}  // namespace hypertune::inline v0
