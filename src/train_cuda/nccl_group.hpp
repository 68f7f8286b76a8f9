// What an NcclCommunicator holds: one rank of one generation.
#pragma once

#include "cuda_objects.hpp"
#include "nccl_handle.hpp"
#include "staging.hpp"

#include <hypertune/train/nccl_communicator.hpp>
#include <hypertune/train/polling.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// An operation that has begun.
struct NcclFlight {
  std::uint64_t number = 0;
  Event done;                       ///< none: it is done
  std::optional<SteadyTime> begun;  ///< when it was asked for first: those before it are done
};

class NcclGroup {
 public:
  /// Not yet connected: nccl_join.cpp does that.
  NcclGroup(GroupPlace place, Rendezvous& rendezvous, const CommunicatorOptions& options, const NcclOptions& nccl);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();

  int rank() const { return place_.rank; }
  int size() const { return place_.size(); }
  const std::string& origin() const { return origin_; }
  const CommunicatorOptions& options() const { return options_; }
  const NcclOptions& nccl() const { return nccl_; }

  void perform(const collective::Operation& operation);
  /// Any thread: where the stream is now that comes before the operation.
  Event mark(const collective::Operation& operation);
  /// Puts it into NCCL's queue, after `marked`. One in host memory is performed.
  NcclFlight begin(const collective::Operation& operation, const Event& marked);
  /// Without waiting. Of several that have begun, the first is asked for first.
  bool is_done(NcclFlight& flight);
  void start(const collective::Operation& operation);
  void finish();
  void order(cudaStream_t stream);
  void abort(const GroupError& why) { end(why); }

  /// `former`: this rank's of the generation before, if any; it is of no use then.
  void connect(NcclGroup* former);

 private:
  // nccl_group.cpp
  std::uint64_t next_number(const collective::Operation& operation);
  Event enqueue(const collective::Operation& operation, std::uint64_t number, SteadyTime deadline);
  void wait(NcclFlight& flight);
  void perform_staged(const collective::Operation& operation, std::size_t most, std::uint64_t number,
                      SteadyTime deadline);
  bool in_device_memory(const collective::Operation& operation) const;
  /// After an error of CUDA, too, the other ranks must not wait for what this one will not do.
  template <class Work>
  void or_give_up(Work work) {
    try {
      work();
    } catch (const GroupError& error) { give_up(error); }
  }
  /// Until it is so, or throws. An end of the group wakes it.
  template <class Holds>
  void poll(Holds holds) {
    Pauses pauses;
    while (!holds()) {
      std::unique_lock lock(mutex_);
      if (!why_) pauses.pause(lock, changed_);
    }
  }
  template <class Done>
  bool is_over(Done done, std::uint64_t number, SteadyTime begun, SteadyTime deadline);
  template <class Done>
  void wait_for(Done done, std::uint64_t number, SteadyTime deadline);
  bool has_come(const Event& event);
  void check_alive();
  void check_nccl(ncclResult_t result, const char* what, std::uint64_t number);
  /// Ends everything for this reason, if nothing else has, and throws the first reason.
  [[noreturn]] void give_up(const GroupError& why);
  [[noreturn]] void throw_why();
  void end(const GroupError& why);
  void retire(bool in_order);
  void drain();

  // nccl_absence.cpp
  void announce(std::uint64_t number);
  std::vector<int> absent(std::uint64_t number);
  /// The other ranks that have not set what begins so.
  std::vector<int> without(const std::string& prefix, SteadyTime limit);
  [[noreturn]] void give_up_late(std::uint64_t number);
  [[noreturn]] void give_up_failed(ncclResult_t error, const char* what, std::uint64_t number);
  std::string key(const std::string& rest) const { return nccl_.name + "/" + rest; }

  // nccl_join.cpp
  struct Plan;
  Plan agree(NcclGroup* former, SteadyTime deadline);
  Plan decide(const std::string& own, SteadyTime deadline);
  std::string offer(NcclGroup* former) const;
  std::string expect(const std::string& key, const std::string& what, SteadyTime deadline);
  void create(const Plan& plan, SteadyTime deadline);
  void shrink(const Plan& plan, NcclGroup& former, SteadyTime deadline);
  void grow(const Plan& plan, NcclGroup* former, SteadyTime deadline);
  void wait_for_peers(SteadyTime deadline, NcclHandle* parent);
  void check_generation();
  std::vector<int> not_there();

  GroupPlace place_;
  Rendezvous& rendezvous_;
  CommunicatorOptions options_;
  NcclOptions nccl_;
  std::string origin_ = "fresh";
  std::string token_;  ///< the same on all ranks of this communicator, and no other's

  Staging staging_;
  DeviceMemory barrier_;  ///< the element that barriers reduce
  Event staged_;
  Stream stream_;  ///< after what is used in it, so that it goes first
  NcclHandle handle_;

  // Of the thread that performs.
  std::uint64_t operations_ = 0;
  NcclFlight started_;           ///< by start()
  std::uint64_t announced_ = 0;  ///< up to there

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GroupError> why_;
  bool ended_ = false;  ///< why_ is set, and NCCL has been told
};

}  // namespace hypertune::inline v0::detail
