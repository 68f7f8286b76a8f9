// The workers of a trial as one of them sees them: its place among them, and how they find each other.
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

/// A collective, or the forming of a group, did not come to its end. `ranks`: which of its generation are lost or late,
/// as far as known.
class GroupError : public Error {
 public:
  enum class Kind : std::uint8_t {
    changed,  ///< a new generation is to be formed, or the attempt is to end: nobody's fault
    lost,     ///< ranks are gone
    late,     ///< ranks have not taken part within the limit
    failed,   ///< what carries the collectives has failed
    device,   ///< the device that this rank computes with is lost to its process (DeviceLost): no later group helps
  };
  GroupError(Kind kind, const std::string& message, std::vector<int> ranks = {})
      : Error(Errc::group, message), kind_(kind), ranks_(std::move(ranks)) {}
  Kind kind() const noexcept { return kind_; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  Kind kind_;
  std::vector<int> ranks_;
};

/// The place of one worker among those that train with it, in one generation.
struct GroupPlace {
  std::uint32_t generation = 0;
  int rank = 0;                           ///< from 0
  std::vector<std::string> hosts = {{}};  ///< where each rank is, by rank
  std::string network = {};               ///< by which hosts reach each other, as "10.1.0.0/16"; empty: none is named

  int size() const { return static_cast<int>(hosts.size()); }
  const std::string& host() const { return hosts.at(static_cast<std::size_t>(rank)); }
  /// Among those on the same host.
  int local_rank() const { return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host())); }
  int local_size() const { return static_cast<int>(std::count(hosts.begin(), hosts.end(), host())); }
  bool on_one_host() const { return local_size() == size(); }
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

/// Where the ranks of one generation leave what others need to find them. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits for somebody to set it; nullopt: nobody did within so many seconds. Throws a GroupError of kind `changed` or
  /// `lost` as soon as the generation is over.
  virtual std::optional<std::string> wait(const std::string& key, Seconds seconds) = 0;
};

/// What a worker of a group and the executor that forms the group say to each other.
struct GroupMessage {
  enum class Kind : std::uint8_t {
    form,    ///< to the worker: leave the generation at the next commit, and stand ready for `place`; rank -1: leave
    run,     ///< to the worker: all ranks of `generation` stand ready
    halt,    ///< to the worker: `generation` is broken, and those before it; `value` says why, `ranks` who is lost
    value,   ///< to the worker: `key` is set to `value` in `generation`
    joined,  ///< from the worker: it stands ready for `generation`; `value` is "fixed" if it cannot change later, `key`
             ///< "committed" if it has committed since it said so before
    broken,  ///< from the worker: it has left `generation`, as its ranks do not reach each other
    set,     ///< from the worker: `key` is `value` in `generation`
    want,    ///< from the worker: it waits for `key`
    late,  ///< from the worker: `ranks` of `generation` have not taken part within the limit; none: it has stood ready
           ///< for `generation` so long, and others that train have not
    rest,  ///< to the worker: the trial is to pause; one whose step is no step of the trial comes to its end
    end,   ///< to who runs the worker, which never sees it: it is late, and to be ended by force
  };
  static constexpr auto last_kind = Kind::end;
  TrialId trial = 0;
  Attempt attempt = 0;
  int member = 0;  ///< the worker's number in the attempt: it keeps it while its rank changes
  Kind kind = Kind::form;
  std::uint32_t generation = 0;
  GroupPlace place = {};
  std::string key = {}, value = {};
  std::vector<int> ranks = {};
};

/// One worker's side of its group, from generation to generation. A trial that runs on one worker only has one, too: it
/// is alone in it. join() and what the rendezvous does belong to the trial's thread; all else may be called by any.
class Group final : public Rendezvous {
 public:
  /// Takes kind, generation, key, value and ranks of a message to the executor.
  using Send = std::function<void(GroupMessage)>;

  /// Of a worker that is alone.
  Group() = default;
  Group(GroupPlace place, Send send) : next_(std::move(place)), send_(std::move(send)), place_(next_) {}

  /// The place that it has, or has been given at its start.
  GroupPlace place() const {
    const std::lock_guard guard(mutex_);
    return place_;
  }
  int rank() const { return place().rank; }
  int size() const { return place().size(); }
  /// Whether it is, or is to be, rank 0 of the newest generation: the trial's reports and checkpoints are its own.
  bool leads() const {
    const std::lock_guard guard(mutex_);
    return next_.rank == 0;
  }
  /// Whether an executor has formed it, though it may have one worker only.
  bool formed() const { return static_cast<bool>(send_); }
  /// Whether the trial is to pause, and this worker is to come to the end of its step for that; said once.
  bool rest_asked() { return rest_.exchange(false, std::memory_order_relaxed); }
  /// Whether this generation is over, or is to be left at the next commit.
  bool change_pending() const { return pending_.load(std::memory_order_relaxed); }
  /// Whether it has joined a generation, and that one is not over.
  bool joined() const {
    const std::lock_guard guard(mutex_);
    return joined_ && !broken();
  }

  /// Stands ready for the newest generation and waits until all its ranks do: however long that takes, as whoever is
  /// lost meanwhile is replaced by another generation, and newcomers may take their time. Of those that have trained
  /// already, whoever does not stand ready within `limit` seconds after this worker is late. `fixed`: the caller cannot
  /// leave it for a later one, so that the attempt ends with the loss of a rank. Throws a GroupError of kind `changed`
  /// if this worker has no place in it, or the attempt is to end.
  GroupPlace join(bool fixed = false, Seconds limit = std::numeric_limits<Seconds>::infinity()) {
    std::unique_lock lock(mutex_);
    if (!send_) {
      joined_ = true;
      return place_;
    }
    // A generation that was joined before, and that nobody has called broken: its ranks do not reach each other.
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
  /// What this worker does next does not begin again where its generation began.
  void note_commit() { committed_.store(true, std::memory_order_relaxed); }

  /// While one lives the worker waits for others of its group, which is no sign that it hangs: whoever does not come is
  /// found by the limit of what it waits in.
  class Waiting {
   public:
    explicit Waiting(Group& group) : group_(group) { group_.waiting_.fetch_add(1, std::memory_order_relaxed); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { group_.waiting_.fetch_sub(1, std::memory_order_relaxed); }

   private:
    Group& group_;
  };
  /// The same while `busy` says so, which does not block and is called by another thread. It replaces the one before.
  void waits_while(std::function<bool()> busy) {
    const std::lock_guard guard(mutex_);
    busy_ = std::move(busy);
  }

  // ---- Of the generation that it has joined
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
  /// These ranks have not taken part in a collective within the limit: they are ended, and replaced.
  void report_late(const std::vector<int>& ranks) {
    if (send_) send_({.kind = GroupMessage::Kind::late, .generation = place().generation, .ranks = ranks});
  }

  /// `halted` is called, by another thread and at most once, when the generation that was joined last is broken: it
  /// ends what waits for its ranks. It replaces the one before. Empty: none.
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
  /// Another number than when it was asked before, where the worker waits for others now.
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
  /// The attempt is to end.
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

  std::mutex calls_;  // one call of on_halt_ at a time, and none after it was replaced; before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  GroupPlace next_ = {};  // the newest one that it was given
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
