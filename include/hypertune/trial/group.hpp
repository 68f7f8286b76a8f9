// The workers of a trial as one of them sees them: its place in the group, and how the workers find each other.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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
  GroupError(Kind kind, const std::string& message, std::vector<int> ranks = {})
      : Error(Errc::group, message), kind_(kind), ranks_(std::move(ranks)) {}
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
  const std::string& host() const { return hosts.at(static_cast<std::size_t>(rank)); }
  /// The rank among the workers on the same host, and their number.
  int local_rank() const { return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host())); }
  int local_size() const { return static_cast<int>(std::count(hosts.begin(), hosts.end(), host())); }
  bool on_one_host() const { return local_size() == size(); }
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
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
  Group() = default;
  Group(GroupPlace place, Send send) : next_(std::move(place)), send_(std::move(send)), place_(next_) {}

  /// The place in the generation joined last; before the first join(), the place given at the start.
  GroupPlace place() const {
    const std::lock_guard guard(mutex_);
    return place_;
  }
  int rank() const { return place().rank; }
  int size() const { return place().size(); }
  /// Whether it is rank 0 of the newest generation, joined or not: the trial's reports and checkpoints are its own.
  bool leads() const {
    const std::lock_guard guard(mutex_);
    return next_.rank == 0;
  }
  /// Whether an executor has formed the group, even if it has only one worker.
  bool formed() const { return static_cast<bool>(send_); }
  /// Whether this worker must end its step because the trial is to pause. True only once for each request.
  bool rest_asked() { return rest_.exchange(false, std::memory_order_relaxed); }
  /// Whether this generation is over, or is to be left at the next commit.
  bool change_pending() const { return pending_.load(std::memory_order_relaxed); }
  /// Whether it has joined a generation that is not over.
  bool joined() const {
    const std::lock_guard guard(mutex_);
    return joined_ && !broken();
  }

  /// Reports that this worker is ready for the newest generation, and waits until all its ranks are. There is no limit
  /// to that, because lost ranks are replaced by another generation, and new workers may take their time. But ranks
  /// that have been training already are late if they are not ready within `limit` seconds after this worker. `fixed`:
  /// the caller cannot leave this generation for a later one, so that the loss of a rank ends the attempt. Throws a
  /// GroupError of kind `changed` if this worker has no place in the generation, or if the attempt is to end.
  GroupPlace join(bool fixed = false, Seconds limit = std::numeric_limits<Seconds>::infinity()) {
    std::unique_lock lock(mutex_);
    if (!send_) {
      joined_ = true;
      return place_;
    }
    // A generation that was joined before and that nobody has declared broken: its ranks do not reach each other.
    const bool given_up = joined_ && running_ == place_.generation;
    std::optional<std::uint32_t> told;
    Seconds late_at = 0;
    const Waiting waits(*this);
    for (;;) {
      require_wanted();
      const std::uint32_t generation = next_.generation;
      const bool again = given_up && generation == place_.generation;
      const bool over = halted_ && *halted_ >= generation;
      if (!over && told != generation) {
        told = generation;
        late_at = detail::steady_seconds() + limit;
        const Send send = send_;
        lock.unlock();
        send({.kind = again ? GroupMessage::Kind::broken : GroupMessage::Kind::joined,
              .generation = generation,
              .key = committed_.exchange(false, std::memory_order_relaxed) ? "committed" : "",
              .value = fixed ? "fixed" : ""});
        lock.lock();
      } else if (!over && !again && running_ == generation) {
        place_ = next_;
        joined_ = true;
        values_.clear();
        update();
        return place_;
      } else if (!over && !again && detail::steady_seconds() >= late_at) {
        late_at = detail::steady_seconds() + limit;
        const Send send = send_;
        lock.unlock();
        send({.kind = GroupMessage::Kind::late, .generation = generation});
        lock.lock();
      } else {
        changed_.wait_for(lock, std::chrono::milliseconds(200));
      }
    }
  }
  /// Notes that this worker has committed: if its generation breaks, it does not start again at the generation's
  /// beginning.
  void note_commit() { committed_.store(true, std::memory_order_relaxed); }

  /// While such an object exists, the worker waits for others of its group, so it does not count as hung. Workers that
  /// do not come are found by the time limit of the waiting call.
  class Waiting {
   public:
    explicit Waiting(Group& group) : group_(group) { group_.waiting_.fetch_add(1, std::memory_order_relaxed); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { group_.waiting_.fetch_sub(1, std::memory_order_relaxed); }

   private:
    Group& group_;
  };
  /// The same while `busy` returns true. It is called by another thread and must not block. Replaces the previous
  /// function.
  void waits_while(std::function<bool()> busy) {
    const std::lock_guard guard(mutex_);
    busy_ = std::move(busy);
  }

  // ---- For the generation that it has joined
  void set(const std::string& key, const std::string& value) override {
    std::unique_lock lock(mutex_);
    if (!send_) {
      values_[key] = value;
      return;
    }
    const auto generation = place_.generation;
    lock.unlock();
    send_({.kind = GroupMessage::Kind::set, .generation = generation, .key = key, .value = value});
  }
  std::optional<std::string> wait(const std::string& key, Seconds seconds) override {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return values_.contains(key); };
    if (!send_) return there() ? std::optional(values_.at(key)) : std::nullopt;
    const auto generation = place_.generation;
    if (!there()) {
      lock.unlock();
      send_({.kind = GroupMessage::Kind::want, .generation = generation, .key = key});
      lock.lock();
    }
    const Waiting waits(*this);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e7));
    changed_.wait_until(lock, std::chrono::time_point_cast<std::chrono::steady_clock::duration>(until),
                        [&] { return there() || broken() || stopped_; });
    if (there()) return values_.at(key);
    require_wanted(false);
    if (broken()) throw_broken();
    return std::nullopt;
  }
  /// Reports ranks that have not taken part in a collective within the limit: they are killed and replaced.
  void report_late(const std::vector<int>& ranks) {
    if (send_) send_({.kind = GroupMessage::Kind::late, .generation = place().generation, .ranks = ranks});
  }

  /// Sets a function that is called at most once, when the generation joined last is broken: by another thread, or at
  /// once if it is broken already. It must end the calls that wait for other ranks. Replaces the previous function.
  /// Empty: none.
  void on_halt(std::function<void(const GroupError&)> halted) {
    const std::lock_guard order(calls_);
    {
      const std::lock_guard guard(mutex_);
      if (!halted || (!broken() && !stopped_)) {
        on_halt_ = std::move(halted);
        return;
      }
      on_halt_ = nullptr;
    }
    halted(why_over());
  }

  // ---- For executors
  /// A number that differs from that of the previous call if the worker is waiting for others now.
  std::uint64_t beats() {
    bool waits = waiting_.load(std::memory_order_relaxed) > 0;
    if (!waits) {
      const std::lock_guard guard(mutex_);
      waits = busy_ && busy_();
    }
    return beats_.fetch_add(waits ? 1 : 0, std::memory_order_relaxed) + (waits ? 1 : 0);
  }
  void receive(GroupMessage message) {
    const std::lock_guard order(calls_);
    std::function<void(const GroupError&)> halted;
    {
      const std::lock_guard guard(mutex_);
      switch (message.kind) {
        case GroupMessage::Kind::form:
          if (message.place.generation > next_.generation) next_ = std::move(message.place);
          break;
        case GroupMessage::Kind::run: running_ = message.generation; break;
        case GroupMessage::Kind::halt:
          halted_ = std::max(halted_.value_or(0), message.generation);
          why_ = std::move(message.value);
          lost_ = std::move(message.ranks);
          break;
        case GroupMessage::Kind::value:
          if (message.generation == place_.generation) values_[message.key] = std::move(message.value);
          break;
        case GroupMessage::Kind::rest: rest_.store(true, std::memory_order_relaxed); break;
        default: return;
      }
      update();
      if (joined_ && broken()) halted = std::exchange(on_halt_, nullptr);
    }
    changed_.notify_all();
    if (halted) halted(why_over());
  }
  /// Tells the worker that the attempt is to end.
  void stop() {
    const std::lock_guard order(calls_);
    std::function<void(const GroupError&)> halted;
    {
      const std::lock_guard guard(mutex_);
      stopped_ = true;
      update();
      halted = std::exchange(on_halt_, nullptr);
    }
    changed_.notify_all();
    if (halted) halted(why_over());
  }

 private:
  bool broken() const { return halted_ && *halted_ >= place_.generation; }
  void update() {
    pending_.store(joined_ && (stopped_ || broken() || next_.generation > place_.generation),
                   std::memory_order_relaxed);
  }
  void require_wanted(bool for_next = true) const {
    if (stopped_) throw GroupError(GroupError::Kind::changed, "the attempt is to end");
    if (for_next && next_.rank < 0)
      throw GroupError(GroupError::Kind::changed, "the group goes on without this worker");
  }
  [[noreturn]] void throw_broken() const {
    throw GroupError(lost_.empty() ? GroupError::Kind::changed : GroupError::Kind::lost, why_, lost_);
  }
  GroupError why_over() const {
    const std::lock_guard guard(mutex_);
    if (stopped_) return {GroupError::Kind::changed, "the attempt is to end"};
    return {lost_.empty() ? GroupError::Kind::changed : GroupError::Kind::lost, why_, lost_};
  }

  std::mutex calls_;  // one call of on_halt_ at a time, and none after it was replaced; locked before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  GroupPlace next_ = {};  // the newest place that it was given
  Send send_ = {};
  GroupPlace place_ = {};
  bool joined_ = false, stopped_ = false;
  std::optional<std::uint32_t> halted_ = {}, running_ = {};
  std::string why_ = {};
  std::vector<int> lost_ = {};
  std::map<std::string, std::string> values_ = {};
  std::function<void(const GroupError&)> on_halt_ = {};
  std::function<bool()> busy_ = {};
  std::atomic<bool> pending_{false}, rest_{false}, committed_{false};
  std::atomic<int> waiting_{0};
  std::atomic<std::uint64_t> beats_{0};
};

}  // namespace hypertune::inline v0
