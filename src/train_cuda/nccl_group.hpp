// What an NcclCommunicator holds: one rank of one generation.
#pragma once

#include "aside.hpp"
#include "cuda_objects.hpp"
#include "device_guard.hpp"
#include "nccl_device.hpp"

#include <hypertune/train/nccl_communicator.hpp>
#include <hypertune/train/polling.hpp>

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
struct NcclFlight {
  std::uint64_t number = 0;
  std::shared_ptr<Event> marked;    ///< what is before it in the user's stream; none: nothing
  bool arrived = false;             ///< that has come
  Event done;                       ///< none: it is not yet in the stream as a whole
  std::optional<SteadyTime> begun;  ///< since when it waits: those before it are done, or it has just arrived
  bool one_way = false;             ///< its end says nothing about where the other ranks are
  bool over = false;
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
  std::shared_ptr<Event> mark(const collective::Operation& operation);
  /// Puts it into NCCL's queue, after `marked`. One in host memory is performed.
  std::shared_ptr<NcclFlight> begin(const collective::Operation& operation, std::shared_ptr<Event> marked);
  /// Without waiting.
  bool is_done(NcclFlight& flight);
  void start(const collective::Operation& operation);
  void finish();
  void order(cudaStream_t stream);
  /// Waits for nothing.
  void abort(const GroupError& why) { end(why); }

  /// `former`: this rank's of the generation before, if any; it is of no use then.
  void connect(NcclGroup* former);

 private:
  // nccl_group.cpp
  std::uint64_t next_number(const collective::Operation& operation);
  Event enqueue(const collective::Operation& operation, NcclFlight& flight);
  void perform_staged(const collective::Operation& operation, std::size_t most, NcclFlight& flight);
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
  /// Asks for those under way, from the first on.
  void advance();
  void end_first();
  bool is_first(const NcclFlight& flight) const { return under_way_.front().get() == &flight; }
  template <class Done>
  bool is_over(NcclFlight& flight, Done done);
  template <class Done>
  void wait_for(NcclFlight& flight, Done done);
  /// The last operation that this rank's stream has come to.
  std::uint64_t arrived();
  void check_nccl(ncclResult_t result, const char* what, std::uint64_t number);

  // nccl_end.cpp
  void check_alive();
  /// Ends everything for this reason, if nothing else has, and throws the first reason.
  [[noreturn]] void give_up(const GroupError& why);
  [[noreturn]] void throw_why();
  void end(const GroupError& why);
  void retire(bool in_order);
  using Leave = std::function<void(NcclDevice&)>;
  /// Under the mutex: does that aside, and waits for the stream there. After what was to be done so before.
  void leave(std::shared_ptr<NcclDevice> device, Leave how);
  /// For one whose next generation has failed.
  void give_back(Leave how);
  /// Whether NCCL and the device have left what they had of the caller's. Waits for it, once and in bounded time.
  bool has_left();
  double leave_seconds() const;
  /// Nothing runs aside for it.
  bool is_at_rest();

  // nccl_absence.cpp
  void announce(std::uint64_t number);
  void announce_one(std::uint64_t number);
  std::vector<int> absent(std::uint64_t number);
  /// The other ranks that have not set what begins so.
  std::vector<int> without(const std::string& prefix, SteadyTime limit);
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
  ncclResult_t call_aside(NcclGroup& of, std::function<ncclResult_t(ncclComm_t)> call, SteadyTime deadline);
  void wait_for_peers(SteadyTime deadline, NcclHandle* parent);
  [[noreturn]] void give_up_connecting();
  void check_generation();
  std::vector<int> not_there();

  GroupPlace place_;
  Rendezvous& rendezvous_;
  CommunicatorOptions options_;
  NcclOptions nccl_;
  std::string origin_ = "fresh";
  std::string token_;  ///< the same on all ranks of this communicator, and no other's

  std::shared_ptr<NcclDevice> device_;

  // Of the thread that performs.
  std::uint64_t operations_ = 0;
  std::deque<std::shared_ptr<NcclFlight>> under_way_;
  std::shared_ptr<NcclFlight> started_;  ///< by start(), the last one
  std::uint64_t announced_ = 0;          ///< up to there
  std::uint64_t arrived_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<GroupError> why_;
  std::shared_ptr<Aside> leaving_;  ///< since why_ is set
  bool abandoned_ = false;          ///< it has been waited for in vain
};

}  // namespace hypertune::inline v0::detail
