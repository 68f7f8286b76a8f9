// The implementation of an NcclCommunicator: one rank of one generation.
#pragma once

#include "background_call.hpp"
#include "cuda_objects.hpp"
#include "device_guard.hpp"
#include "nccl_device.hpp"

#include <hypertune/train/detail/polling.hpp>
#include <hypertune/train/nccl_communicator.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// An operation that has begun.
struct NcclRequest {
  std::uint64_t number = 0;
  std::shared_ptr<Event> marked;    ///< after the preceding work in the user's stream; null: there is none
  bool arrived = false;             ///< the preceding work is done
  Event done;                       ///< null: not all of the operation is in the stream yet
  std::optional<SteadyTime> begun;  ///< since when it waits: its turn has come, or its stream has
  bool one_way = false;             ///< its completion tells nothing about the progress of other ranks
  bool over = false;
};

class NcclGroup {
 public:
  /// Makes a group that is not connected yet; connect() does that.
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
  /// Records the present position of the stream that precedes the operation. May be called from any thread.
  std::shared_ptr<Event> mark(const collective::Operation& operation);
  /// Puts the operation into NCCL's queue, after `marked`. An operation on host memory is performed at once.
  std::shared_ptr<NcclRequest> begin(const collective::Operation& operation, std::shared_ptr<Event> marked);
  /// Does not wait.
  bool is_done(NcclRequest& request);
  void start(const collective::Operation& operation);
  void finish();
  void order(cudaStream_t stream);
  /// Does not wait.
  void abort(const GroupError& why) { end(why); }

  /// `former`: this rank's group of the previous generation, or null. It is unusable afterwards.
  void connect(NcclGroup* former);

 private:
  // nccl_group.cpp
  std::uint64_t next_number(const collective::Operation& operation);
  Event enqueue(const collective::Operation& operation, NcclRequest& request);
  void perform_staged(const collective::Operation& operation, std::size_t most, NcclRequest& request);
  /// Gives up the group after an error of CUDA, too, so that the other ranks do not wait for this one.
  template <class Work>
  void or_give_up(Work work) {
    try {
      work();
    } catch (const GroupError& error) { give_up(error); }
  }
  /// Waits until `holds` returns true or throws. The end of the group ends a pause early.
  template <class Holds>
  void poll(Holds holds) {
    Pauses pauses;
    while (!holds()) {
      std::unique_lock lock(mutex_);
      if (!why_) pauses.pause(lock, changed_);
    }
  }
  /// Checks the operations in progress, in order, and removes those that are done.
  void advance();
  void end_first();
  bool is_first(const NcclRequest& request) const { return under_way_.front().get() == &request; }
  template <class Done>
  bool is_over(NcclRequest& request, Done done);
  template <class Done>
  void wait_for(NcclRequest& request, Done done);
  /// The number of the last operation that this rank's stream has reached.
  std::uint64_t arrived();
  void check_nccl(ncclResult_t result, const char* what, std::uint64_t number);

  // nccl_end.cpp
  void check_alive();
  /// Ends everything for this reason, unless it has ended already, and throws the first reason.
  [[noreturn]] void give_up(const GroupError& why);
  [[noreturn]] void throw_why();
  void end(const GroupError& why);
  void release(bool in_order);
  using Leave = std::function<void(NcclDevice&)>;
  /// Calls `how` and drains the stream on another thread, after earlier work of this kind. Call it under the mutex.
  void leave(std::shared_ptr<NcclDevice> device, Leave how);
  /// Releases the communicator; for a former group whose next generation has failed.
  void give_back(Leave how);
  /// Whether NCCL and the device no longer use the caller's buffers. Waits for that, once and in bounded time.
  bool wait_until_released();
  double leave_seconds() const;
  /// Whether no work on other threads is left.
  bool has_no_background_work();

  // nccl_absence.cpp
  void announce(std::uint64_t number);
  void announce_one(std::uint64_t number);
  std::vector<int> ranks_not_arrived(std::uint64_t number);
  /// The other ranks that have not set the key with this prefix.
  std::vector<int> ranks_without_key(const std::string& prefix, SteadyTime limit);
  [[noreturn]] void give_up_late(std::uint64_t number);
  [[noreturn]] void give_up_behind(std::uint64_t number);
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
  ncclResult_t call_in_background(NcclGroup& of, std::function<ncclResult_t(ncclComm_t)> call, SteadyTime deadline);
  void wait_for_peers(SteadyTime deadline, NcclHandle* parent);
  [[noreturn]] void give_up_connecting();
  void check_generation();
  std::vector<int> ranks_not_connected();

  GroupPlace place_;
  Rendezvous& rendezvous_;
  CommunicatorOptions options_;
  NcclOptions nccl_;
  std::string origin_ = "fresh";
  std::string token_;  ///< equal on all ranks of this communicator, and on no others

  std::shared_ptr<NcclDevice> device_;

  // Used by the performing thread only:
  std::uint64_t operations_ = 0;
  std::deque<std::shared_ptr<NcclRequest>> under_way_;
  std::shared_ptr<NcclRequest> started_;  ///< the last one started by start()
  std::uint64_t announced_ = 0;           ///< number of the last announced operation
  std::uint64_t arrived_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GroupError> why_;
  std::shared_ptr<BackgroundCall> leaving_;  ///< set together with why_
  bool abandoned_ = false;                   ///< waiting for leaving_ has timed out
};

}  // namespace hypertune::inline v0::detail
