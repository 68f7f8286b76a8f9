// The workers of a trial as one of them sees them: its place in the group, and how the workers find each other.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// A collective operation, or the forming of a group, has failed. `ranks`: which ranks of its generation are lost or
/// late, as far as known.
class GroupError : public Error {
 public:
  enum class Kind : std::uint8_t {
    changed,  ///< a new generation is about to form, or the attempt is to end: not a failure
    lost,     ///< ranks are lost
    late,     ///< ranks have not taken part within the time limit
    failed,   ///< the transport of the collectives has failed
    device,   ///< this rank's device can no longer be used by its process (DeviceLost): no later group helps
  };
  GroupError(Kind kind, const std::string& message, std::vector<int> ranks = {});
  Kind kind() const noexcept { return kind_; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  Kind kind_;
  std::vector<int> ranks_;
};

/// The place of one worker in one generation of its group.
struct GroupPlace {
  std::uint32_t generation = 0;
  int rank = 0;                           ///< from 0
  std::vector<std::string> hosts = {{}};  ///< the host of each rank
  std::string network = {};               ///< through which hosts reach each other, as "10.1.0.0/16"; empty: not named
  /// The cores of all ranks on this rank's host, numbered as in Slot::cpus, ascending; empty: fractions of cores.
  std::vector<int> cpus = {};

  int size() const { return static_cast<int>(hosts.size()); }
  const std::string& host() const;
  /// The rank among the workers on the same host, and their number.
  int local_rank() const;
  int local_size() const;
  bool on_one_host() const { return local_size() == size(); }
  friend bool operator==(const GroupPlace& a, const GroupPlace& b);
};

/// A store of keys and values, through which the ranks of one generation find each other. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is set; nullopt if that does not happen within `seconds`. Throws a GroupError of kind
  /// `changed` or `lost` as soon as the generation is over.
  virtual std::optional<std::string> wait(const std::string& key, Seconds seconds) = 0;
};

/// A message between a worker of a group and the executor that forms the group.
struct GroupMessage {
  enum class Kind : std::uint8_t {
    form,    ///< to the worker: leave the generation at the next commit, and get ready for `place`; rank -1: leave
    run,     ///< to the worker: all ranks of `generation` are ready
    halt,    ///< to the worker: `generation` and those before it are broken; `value` says why, `ranks` which are lost
    value,   ///< to the worker: `key` is set to `value` in `generation`
    joined,  ///< from the worker: it is ready for `generation`; `value` is "fixed" if it cannot change later, `key` is
             ///< "committed" if it has committed since its last such message
    broken,  ///< from the worker: it has left `generation`, because its ranks do not reach each other
    set,     ///< from the worker: sets `key` to `value` in `generation`
    want,    ///< from the worker: it waits for `key`
    late,    ///< from the worker: `ranks` of `generation` have not taken part within the limit; none: this worker has
             ///< been ready for `generation` for so long, and others that were training are not
    rest,    ///< to the worker: the trial is to pause; a worker whose step is not the trial's ends that step
    end,     ///< to the process that runs the worker, not to the worker: it is late and must be killed
  };
  static constexpr auto last_kind = Kind::end;
  TrialId trial = 0;
  Attempt attempt = 0;
  int member = 0;  ///< the worker's number in the attempt, which stays the same when its rank changes
  Kind kind = Kind::form;
  std::uint32_t generation = 0;
  GroupPlace place = {};
  std::string key = {}, value = {};
  std::vector<int> ranks = {};
};

/// One worker's side of its group, from generation to generation. A trial on a single worker has a group of one. join()
/// and the members of Rendezvous must be called by the trial's thread; all others may be called from any thread.
class Group final : public Rendezvous {
 public:
  /// Sends a message to the executor; only kind, generation, key, value and ranks are set.
  using Send = std::function<void(GroupMessage)>;

  /// The group of a single worker.
  Group();
  Group(GroupPlace place, Send send);
  ~Group() override;

  /// The place in the generation joined last; before the first join(), the place given at the start.
  GroupPlace place() const;
  int rank() const { return place().rank; }
  int size() const { return place().size(); }
  /// Whether it is rank 0 of the newest generation, joined or not: the trial's reports and checkpoints are its own.
  bool leads() const;
  /// Whether an executor has formed the group, even if it has only one worker.
  bool formed() const;
  /// Whether this worker must end its step because the trial is to pause. True only once for each request.
  bool rest_asked();
  /// Whether this generation is over, or is to be left at the next commit.
  bool change_pending() const;
  /// Whether it has joined a generation that is not over.
  bool joined() const;

  /// Reports that this worker is ready for the newest generation, and waits until all its ranks are. There is no limit
  /// to that, because lost ranks are replaced by another generation, and new workers may take their time. But ranks
  /// that have been training already are late if they are not ready within `limit` seconds after this worker. `fixed`:
  /// the caller cannot leave this generation for a later one, so that the loss of a rank ends the attempt. Throws a
  /// GroupError of kind `changed` if this worker has no place in the generation, or if the attempt is to end.
  GroupPlace join(bool fixed = false, Seconds limit = std::numeric_limits<Seconds>::infinity());
  /// Notes that this worker has committed: if its generation breaks, it does not start again at the generation's
  /// beginning.
  void note_commit();

  /// While such an object exists, the worker waits for others of its group, so it does not count as hung. Workers that
  /// do not come are found by the time limit of the waiting call.
  class Waiting {
   public:
    explicit Waiting(Group& group);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    Group& group_;
  };
  /// The same while `busy` returns true. It is called by another thread and must not block. Replaces the previous
  /// function.
  void waits_while(std::function<bool()> busy);

  // ---- For the generation that it has joined
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> wait(const std::string& key, Seconds seconds) override;
  /// Reports ranks that have not taken part in a collective within the limit: they are killed and replaced.
  void report_late(const std::vector<int>& ranks);

  /// Sets a function that is called at most once, when the generation joined last is broken: by another thread, or at
  /// once if it is broken already. It must end the calls that wait for other ranks. Replaces the previous function.
  /// Empty: none.
  void on_halt(std::function<void(const GroupError&)> halted);

  // ---- For executors
  /// A number that differs from that of the previous call if the worker is waiting for others now.
  std::uint64_t beats();
  void receive(GroupMessage message);
  /// Tells the worker that the attempt is to end.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> self_;
};

}  // namespace hypertune::inline v0
