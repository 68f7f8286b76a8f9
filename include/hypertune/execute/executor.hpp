// The Executor concept: commands go down, events come up, both plain values.
#pragma once

#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/growths.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/log_limit.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

// ---- Commands: from the Tuner to the executor. None of them blocks. ------------------------------------------------

/// Where an attempt stands that began under an earlier driver.
struct UnderWay {
  Seconds since = 0;      ///< when it began, reported, or went on after a loss of workers last
  bool reported = false;  ///< it has reported since it began, and the answer to its last report follows
  bool forming = false;   ///< workers were lost then, and those it has since are still to form a generation
  Growths growths = {};   ///< workers that were to join it since it began or lost some; perhaps they have
};
/// What one worker of a group is launched as, by the executor that forms the group. Its numbers are of the group.
struct Seat {
  int member = 0;
  GroupPlace place;
};
/// Start an attempt, or let a parked one go on (`parked`: the executor still holds the run under this trial and
/// attempt).
struct Launch {
  TrialId trial;
  Attempt attempt;
  Point point;
  Params params;
  std::vector<CheckpointInfo> restore;  ///< candidates, newest first: the first sound one is used; none: from the start
  Allocation allocation;                ///< several slots only for an executor that runs gangs
  std::uint64_t seed = 0;
  bool parked = false;
  int next_step = 0;                       ///< expected: that of restore.front(), or of the parked run
  std::optional<UnderWay> under_way = {};  ///< for workers that have outlived a driver
  /// For worker processes: where `restore` has candidates and none is sound, the attempt fails instead of beginning
  /// anew.
  bool must_restore = false;
  bool group = false;             ///< it may have several workers, now or later
  std::optional<Seat> seat = {};  ///< this is one of them; none: the executor is to form the group
};
/// A run of an executor's own: a trial, or one worker of its group.
using RunKey = std::pair<TrialId, int>;
inline RunKey key_of(const Launch& launch) { return {launch.trial, launch.seat ? launch.seat->member : 0}; }
/// The file in the trial's folder that has what this worker prints.
inline std::string log_name(int member) { return member > 0 ? "worker-" + std::to_string(member) + ".log" : "log"; }
/// The answer to a report: train the next step. `save`: write a checkpoint first (where the trial can).
struct Continue {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;  ///< of a group, as its executor numbers them; so in all that follows
};
/// The answer to a report: keep the run's state and free its slot. Answered by Paused. An executor that cannot keep a
/// run in memory saves a checkpoint and ends the process. `save`: write a checkpoint as well, where the trial can.
struct Pause {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;    ///< of a group, as its executor numbers them; so in all that follows
  bool keep = true;  ///< false: it is not to stay in memory where a checkpoint brings it back to where it is
};
/// End the attempt, at any time: between steps at once, within a step as soon as the executor can. Answered by Stopped.
/// `save`: write a checkpoint first if the run is between steps. Also drops a parked run; that is not answered, as its
/// slot is free already.
struct Stop {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;  ///< of a group, as its executor numbers them; so in all that follows
};

/// The attempt goes on with other workers: a new generation. Given before the answer to a report, or after MemberLost.
/// Answered by Resized; slots that are not in it are free then. Only for an executor that runs gangs.
struct Resize {
  TrialId trial;
  Attempt attempt;
  Allocation allocation;
  std::vector<int> from;  ///< for each rank the one it had in the generation before; -1: a worker that begins now
};

/// The last one is said by an executor that forms a group to one that runs its workers, never by the Tuner.
using Command = std::variant<Launch, Continue, Pause, Stop, Resize, GroupMessage>;

// ---- Events: from the executor to the Tuner. -----------------------------------------------------------------------

/// The attempt runs now. `next_step`: where it goes on from, after whatever could be restored.
struct Started {
  TrialId trial;
  Attempt attempt;
  int next_step = 0;
  int member = 0;
};
/// A report; the run waits for Continue, Pause or Stop. `checkpoint`: one that the trial made and named itself.
struct Reported {
  TrialId trial;
  Attempt attempt;
  Report report;
  std::optional<CheckpointInfo> checkpoint;
  int member = 0;
  bool fixed = false;  ///< the number of its workers cannot change while it runs
  int workers = -1;    ///< how many it wants from now on; 0: any; -1: it has not said, so what it said before holds
};
/// A checkpoint is sealed. May come after the command that follows it was acted upon.
struct Checkpointed {
  TrialId trial;
  Attempt attempt;
  CheckpointInfo checkpoint;
  int member = 0;
};
/// Answer to Pause: the slot is free. `parked`: the executor holds the run; else it goes on from its checkpoint.
struct Paused {
  TrialId trial;
  Attempt attempt;
  bool parked = false;
  int member = 0;
};
/// The trial ended by itself: the slot is free.
struct Finished {
  TrialId trial;
  Attempt attempt;
  int member = 0;
};
/// Answer to Stop: the slot is free.
struct Stopped {
  TrialId trial;
  Attempt attempt;
  int member = 0;
};
/// The attempt is over, not by its own wish: the slot is free.
struct Failed {
  TrialId trial;
  Attempt attempt;
  Cause cause;
  int member = 0;
};
/// Workers of a running attempt are lost, and with them its generation: their slots are free, and the others wait for a
/// Resize or a Stop. The step that was under way is done again. Not told of an attempt that has been told to pause or
/// stop, nor of one that has no worker left: these have Failed. No ranks: all are there, but do not reach each other.
struct MemberLost {
  TrialId trial;
  Attempt attempt;
  std::uint32_t generation = 0;
  std::vector<int> ranks;
  Cause cause;
  bool leaving = false;  ///< they will be lost: they train until the others go on without them, and nobody waits yet
  /// Those who train have committed since the loss before, as far as is known: false is told by groups whose members
  /// say so.
  bool progress = true;
};
/// Answer to Resize: the new generation trains, and whoever has no place in it is gone.
struct Resized {
  TrialId trial;
  Attempt attempt;
  std::uint32_t generation = 0;
};
/// A checkpoint could not be restored and was set aside.
struct CheckpointLost {
  TrialId trial;
  CheckpointInfo checkpoint;
  std::string why;
};
/// A checkpoint could not be written, or did not arrive where it is kept: the trial goes on without it.
struct SaveFailed {
  TrialId trial;
  int steps = 0;
  std::string why;
};
/// A line for the user that belongs to no decision (a warning of the executor).
struct Notice {
  std::string text;
};
/// Hosts come and go; `host` indexes hosts(). A lost host's attempts are reported as Failed one by one, after HostLost;
/// one that will be taken away is told as lost while its attempts still run and save.
struct HostGained {
  int host;
  /// What it has, where the executor learns that only now; needed of a host that is new. New ones come in order: the
  /// first has the number that hosts() had entries.
  std::optional<Host> what = {};
};
struct HostLost {
  int host;
  std::string why;
  bool for_good = false;  ///< it will not come back: trials that no other host could hold need not wait for it
  bool removed = false;   ///< somebody has taken it from the list: it may come back, and who has a choice need not wait
  /// It, or another one in its place, is on its way: nobody need be told that it is waited for. Where it has not been
  /// there yet that is no loss, and `why` says what it waits for.
  bool coming = false;
};

/// The last one is said by an executor that runs workers of a group to the one that forms it.
using Event = std::variant<Started, Reported, Checkpointed, Paused, Finished, Stopped, Failed, CheckpointLost,
                           SaveFailed, Notice, HostGained, HostLost, MemberLost, Resized, GroupMessage>;

/// Where an executor delivers events. May be called from any thread, also from within perform() of the same thread's
/// event; a call may issue commands to the executor before it returns (a report is usually answered so).
using EventSink = std::function<void(Event)>;

/// What an executor is given when the experiment starts.
struct ExecutorStart {
  std::shared_ptr<const Program> program;
  std::filesystem::path directory;  ///< the experiment's folder; trials/<id> below it are the trials' own
  EventSink sink;
  Seconds hang_limit = 0;  ///< seconds without report or alive() after which an attempt is taken for hung; 0: none
  std::uint64_t log_limit = default_log_limit;  ///< bytes of each trial's log that are kept; 0: all
  /// By which the hosts of a group reach each other, as "10.1.0.0/16"; empty: groups are on one host each.
  std::string network = {};
  /// For worker processes. Where checkpoints are written instead, in the same layout; it must be there. Empty: below
  /// `directory`.
  std::filesystem::path checkpoints = {};
  /// Likewise: folders of experiments in which those to go on from are looked for as well, and left as they are.
  std::vector<std::filesystem::path> origins = {};
};

/// What an experiment is about to ask for.
struct Workload {
  std::optional<std::int64_t> trials;  ///< that are still to be done; nullopt: nobody can say
  Resources each;                      ///< what a trial needs, or each of its workers
  int workers = 1;                     ///< of each trial, at least
  int most_workers = 1;                ///< … and at most
  std::int64_t concurrency = 0;        ///< trials that run at once at most; 0: any number
  std::filesystem::path directory;     ///< the experiment's folder, which need not be there yet
  bool ordered = false;                ///< decisions do not depend on who is there when
  bool quiet = false;                  ///< say nothing that is no error
  bool handle_signals = false;         ///< Ctrl-C is hypertune's
  bool exit_if_stuck = false;          ///< … and ends the process where it cannot be waited for
  std::string name = {};               ///< the experiment's

  /// How many workers, of `limit`, there can be something to do for at once.
  int useful_workers(int limit) const {
    std::int64_t at_once = limit;
    if (trials && *trials > 0) at_once = std::min(at_once, *trials);
    if (concurrency > 0) at_once = std::min(at_once, concurrency);
    return static_cast<int>(std::min<std::int64_t>(limit, at_once * std::max(1, most_workers)));
  }
};

/// An Executor carries commands out. It keeps these laws (the conformance suite checks them):
/// - perform() never blocks; it may be called from any thread, one call at a time.
/// - Events of one attempt come in order and one at a time: Started, then Reported and its answer in turn, then exactly
///   one of Paused, Finished, Stopped, Failed, and nothing of that attempt after it, Checkpointed included. Only a
///   Launch with `parked` takes it up again after Paused; a Stop drops it then, without any event.
/// - An attempt of several workers is one attempt: rank 0 reports, and its end is that of all of them. Each Resize is
///   answered by Resized, MemberLost or the attempt's end; words of a generation that is over are not told.
/// - Commands that name an attempt which is over, or was never begun, are ignored.
/// - wait() blocks until notify(), or the deadline, or (executors that work in the caller's thread) until it has
///   delivered an event; it returns at once when there is nothing left to do and never sleeps past a notify().
/// - shutdown() ends every attempt without events and leaves no thread, process or timer behind. The destructor does
/// too.
template <class E>
concept Executor = std::movable<E> &&
                   requires(E& executor, const E& constant, ExecutorStart start, Command command, Seconds deadline) {
                     { constant.hosts() } -> std::convertible_to<std::vector<Host>>;
                     { constant.now() } -> std::convertible_to<Seconds>;
                     executor.start(std::move(start));
                     executor.perform(std::move(command));
                     executor.wait(deadline);
                     executor.notify();
                     executor.shutdown();
                   };

namespace detail {

/// Says which member an executor lacks.
template <class E>
constexpr void explain_executor() {
  if constexpr (!std::is_class_v<E>) {
    static_assert(
        std::is_class_v<E>,
        "hypertune: this is no executor: write ht::threads(), ht::processes(), or an object of a class that is "
        "an Executor");
  } else {
    static_assert(std::movable<E>, "hypertune: an Executor must be movable");
    static_assert(
        requires(const E& e) {
          { e.hosts() } -> std::convertible_to<std::vector<Host>>;
        }, "hypertune: an Executor needs std::vector<ht::Host> hosts() const");
    static_assert(
        requires(const E& e) {
          { e.now() } -> std::convertible_to<Seconds>;
        }, "hypertune: an Executor needs ht::Seconds now() const");
    static_assert(
        requires(E& e, ExecutorStart start) { e.start(std::move(start)); },
        "hypertune: an Executor needs void start(ht::ExecutorStart)");
    static_assert(
        requires(E& e, Command command) { e.perform(std::move(command)); },
        "hypertune: an Executor needs void perform(ht::Command)");
    static_assert(
        requires(E& e, Seconds deadline) { e.wait(deadline); },
        "hypertune: an Executor needs void wait(ht::Seconds deadline)");
    static_assert(requires(E& e) { e.notify(); }, "hypertune: an Executor needs void notify()");
    static_assert(requires(E& e) { e.shutdown(); }, "hypertune: an Executor needs void shutdown()");
  }
}

}  // namespace detail

/// Any Executor, by value.
class AnyExecutor {
 public:
  template <class E>
    requires(!std::same_as<E, AnyExecutor> && Executor<E>)
  AnyExecutor(E executor) : self_(std::make_shared<Holder<E>>(std::move(executor))) {}  // NOLINT: implicit on purpose
  /// Says what is missing, where the compiler would only find no way to call tune() with these options.
  template <class E>
    requires(!std::same_as<E, AnyExecutor> && !Executor<E>)
  AnyExecutor(const E&) {  // NOLINT
    detail::explain_executor<E>();
  }

  std::vector<Host> hosts() const { return self_->hosts(); }
  Seconds now() const { return self_->now(); }
  /// Error of kind `usage` while it runs another experiment: copies are the same executor.
  void start(ExecutorStart start) {
    if (self_->busy.exchange(true))
      fail(Errc::usage, "this executor runs another experiment: give each its own (copied options share theirs)");
    try {
      self_->start(std::move(start));
    } catch (...) {
      self_->busy = false;
      throw;
    }
  }
  void perform(Command command) { self_->perform(std::move(command)); }
  void wait(Seconds deadline) { self_->wait(deadline); }
  void notify() { self_->notify(); }
  void shutdown() {
    self_->shutdown();
    self_->busy = false;
  }
  /// Where a virtual clock goes on after a restart; executors that live in real time have no such member.
  void restore_clock(Seconds now) { self_->restore_clock(now); }
  /// How long workers take to begin, where that is known beforehand, as in virtual time; else 0.
  Seconds startup() const { return self_->startup(); }
  /// Whether its time is virtual (then nothing is shown live, and the clock starts at 0).
  bool simulated() const { return self_->simulated(); }
  /// Whether decisions must have been made when an event's call returns: nothing may be decided on other threads
  /// meanwhile. So it is where time is virtual; others say `static constexpr bool is_synchronous = true;`.
  bool synchronous() const { return self_->synchronous(); }
  /// Whether its trials may have several workers (`static constexpr bool runs_gangs = true;`).
  bool gangs() const { return self_->gangs(); }
  std::string name() const { return self_->name(); }
  /// For executors whose hosts are there for the experiment (they have all three members): `prepare` comes before
  /// hosts(), `trial_ended` when a trial has ended for good, on the strand, and `teardown` last, however the run ends.
  bool elastic() const { return self_->elastic(); }
  void prepare(const Workload& workload) { self_->prepare(workload); }
  void trial_ended(TrialId trial) { self_->trial_ended(trial); }
  void teardown() { self_->teardown(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual std::vector<Host> hosts() const = 0;
    virtual Seconds now() const = 0;
    virtual void start(ExecutorStart) = 0;
    virtual void perform(Command) = 0;
    virtual void wait(Seconds) = 0;
    virtual void notify() = 0;
    virtual void shutdown() = 0;
    virtual void restore_clock(Seconds) = 0;
    virtual Seconds startup() const = 0;
    virtual bool simulated() const = 0;
    virtual bool synchronous() const = 0;
    virtual bool gangs() const = 0;
    virtual std::string name() const = 0;
    virtual bool elastic() const = 0;
    virtual void prepare(const Workload&) = 0;
    virtual void trial_ended(TrialId) = 0;
    virtual void teardown() = 0;
    std::atomic<bool> busy{false};
  };
  template <class E>
  struct Holder final : Interface {
    explicit Holder(E e) : executor(std::move(e)) {}
    std::vector<Host> hosts() const override { return executor.hosts(); }
    Seconds now() const override { return executor.now(); }
    void start(ExecutorStart s) override { executor.start(std::move(s)); }
    void perform(Command c) override { executor.perform(std::move(c)); }
    void wait(Seconds d) override { executor.wait(d); }
    void notify() override { executor.notify(); }
    void shutdown() override { executor.shutdown(); }
    void restore_clock([[maybe_unused]] Seconds now) override {
      if constexpr (requires { executor.restore_clock(now); }) executor.restore_clock(now);
    }
    Seconds startup() const override {
      if constexpr (requires { executor.startup(); })
        return executor.startup();
      else
        return 0;
    }
    bool simulated() const override {
      if constexpr (requires { E::is_simulated; })
        return E::is_simulated;
      else
        return false;
    }
    bool synchronous() const override {
      if constexpr (requires { E::is_synchronous; })
        return E::is_synchronous;
      else
        return simulated();
    }
    bool gangs() const override {
      if constexpr (requires { E::runs_gangs; })
        return E::runs_gangs;
      else
        return false;
    }
    std::string name() const override {
      if constexpr (requires {
                      { executor.name() } -> std::convertible_to<std::string>;
                    })
        return executor.name();
      else
        return "custom";
    }
    static constexpr bool is_elastic = requires(E& e, const Workload& workload, TrialId trial) {
      e.prepare(workload);
      e.trial_ended(trial);
      e.teardown();
    };
    bool elastic() const override { return is_elastic; }
    void prepare([[maybe_unused]] const Workload& workload) override {
      if constexpr (is_elastic) executor.prepare(workload);
    }
    void trial_ended([[maybe_unused]] TrialId trial) override {
      if constexpr (is_elastic) executor.trial_ended(trial);
    }
    void teardown() override {
      if constexpr (is_elastic) executor.teardown();
    }
    E executor;
  };
  std::shared_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
