// The Executor concept. Commands go to the executor and events come back; both are plain values.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/detail/growths.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/detail/log_limit.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

// ---- Commands: from the Tuner to the executor. None of them blocks. ------------------------------------------------

/// The state of an attempt that began under an earlier driver.
struct UnderWay {
  Seconds since = 0;      ///< when it last began, reported, or went on after a loss of workers
  bool reported = false;  ///< it has reported since it began; the answer to its last report follows
  bool forming = false;   ///< workers were lost at `since`, and the present ones have not formed a generation yet
  Growths growths = {};   ///< workers that were asked to join since it began or lost workers; they may have joined
};
/// A member of a group: how the executor that forms the group launches one worker.
struct Seat {
  int member = 0;
  GroupPlace place;
};
/// Start an attempt, or continue a parked one (`parked`: the executor keeps the run of this trial and attempt).
struct Launch {
  TrialId trial;
  Attempt attempt;
  Point point;
  Params params;
  std::vector<CheckpointInfo> restore;  ///< newest first: the first undamaged one is used; none: from the start
  Allocation allocation;                ///< several slots only if the executor supports groups (runs_gangs)
  std::uint64_t seed = 0;
  bool parked = false;
  int next_step = 0;                       ///< expected next step: that of restore.front() or of the parked run
  std::optional<UnderWay> under_way = {};  ///< set for workers that have outlived a driver
  /// For worker processes: if `restore` has candidates and all are damaged, the attempt fails instead of beginning
  /// anew.
  bool must_restore = false;
  bool group = false;             ///< the trial may have several workers, now or later
  std::optional<Seat> seat = {};  ///< this is a member of a group; nullopt: the executor forms the group
};
/// Key of an executor's run: the trial, and the member of its group (0 without a group).
using RunKey = std::pair<TrialId, int>;
RunKey key_of(const Launch& launch);
/// The name of the file in the trial's folder with this worker's output.
std::string log_name(int member);
/// The answer to a report: train the next step. `save`: write a checkpoint first, if the trial can.
struct Continue {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;  ///< number of the member within its group; 0 without a group
};
/// The answer to a report: keep the run's state and free its slot. Answered by Paused. An executor that cannot keep a
/// run in memory saves a checkpoint and ends the run. `save`: write a checkpoint as well, if the trial can.
struct Pause {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;    ///< number of the member within its group; 0 without a group
  bool keep = true;  ///< false: do not keep it in memory if a checkpoint can restore it
};
/// End the attempt, at any time: between steps at once, within a step as soon as the executor can. Answered by Stopped.
/// `save`: write a checkpoint first if the run is between steps. Also drops a parked run; this is not answered, because
/// its slot is free already.
struct Stop {
  TrialId trial;
  Attempt attempt;
  bool save = false;
  int member = 0;  ///< number of the member within its group; 0 without a group
};

/// The attempt goes on with other workers: a new generation. Sent before the answer to a report, or after MemberLost.
/// Answered by Resized; slots that are not in the new allocation are free then. Only for an executor that supports
/// groups.
struct Resize {
  TrialId trial;
  Attempt attempt;
  Allocation allocation;
  std::vector<int> from;  ///< for each rank the worker's rank in the previous generation; -1: a new worker
};

/// GroupMessage is sent by an executor that forms a group to one that runs its workers, never by the Tuner.
using Command = std::variant<Launch, Continue, Pause, Stop, Resize, GroupMessage>;

// ---- Events: from the executor to the Tuner. -----------------------------------------------------------------------

/// The attempt runs now. `next_step`: the step that it begins with, after restoring.
struct Started {
  TrialId trial;
  Attempt attempt;
  int next_step = 0;
  int member = 0;
};
/// A report; the run waits for Continue, Pause or Stop. `checkpoint`: a checkpoint that the trial made itself.
struct Reported {
  TrialId trial;
  Attempt attempt;
  Report report;
  std::optional<CheckpointInfo> checkpoint;
  int member = 0;
  bool fixed = false;  ///< the trial's number of workers cannot change while it runs
  int workers = -1;    ///< number of workers that it wants from now on; 0: any; -1: unchanged
};
/// A checkpoint is sealed. May come after later commands have been carried out.
struct Checkpointed {
  TrialId trial;
  Attempt attempt;
  CheckpointInfo checkpoint;
  int member = 0;
};
/// Answer to Pause: the slot is free. `parked`: the executor keeps the run; else the trial goes on from its checkpoint.
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
/// The attempt has failed: the slot is free.
struct Failed {
  TrialId trial;
  Attempt attempt;
  Cause cause;
  int member = 0;
};
/// Workers of a running attempt are lost, and so its generation is broken: their slots are free, and the other workers
/// wait for a Resize or a Stop. The interrupted step is done again. Not sent for an attempt that was told to pause or
/// stop, or that has no worker left: these get Failed. Without `ranks` nobody is lost: the workers do not reach each
/// other, or, with `newcomers`, they would stand still until these are ready.
struct MemberLost {
  TrialId trial;
  Attempt attempt;
  std::uint32_t generation = 0;
  std::vector<int> ranks;
  Cause cause;
  bool leaving = false;  ///< they will be lost soon: until then all workers train on, and none waits yet
  /// The workers have committed since the previous loss. True also if unknown: only groups whose members report it send
  /// false.
  bool progress = true;
  /// New workers: those of `ranks` that had not done a step with the others yet, and, if no generation trains, those
  /// that are not ready.
  std::vector<int> newcomers = {};
};
/// Answer to Resize: the new generation trains, and workers without a place in it are gone.
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
/// A checkpoint could not be written, or not be transferred to where it is kept: the trial goes on without it.
struct SaveFailed {
  TrialId trial;
  int steps = 0;
  std::string why;
};
/// A line for the user that affects no decision (a warning of the executor).
struct Notice {
  std::string text;
};
/// Hosts may appear and be lost; `host` is an index into hosts(). After HostLost, the host's attempts are reported as
/// Failed one by one. For a host that is about to be taken away, HostLost is sent while its attempts still run and
/// save.
struct HostGained {
  int host;
  /// The host's description, if the executor has only learnt it now; required for a new host. New hosts are numbered
  /// consecutively, beginning with the size of hosts().
  std::optional<Host> what = {};
};
struct HostLost {
  int host;
  std::string why;
  bool for_good = false;  ///< it will not come back: trials that fit on no other host need not wait for it
  bool removed = false;   ///< the user has removed it: it may come back, but is not worth waiting for
  /// The host, or a replacement, is being started: the user need not be told that it is waited for. If it has never
  /// been there, this is no loss, and `why` says what it waits for.
  bool coming = false;
};

/// GroupMessage is sent by an executor that runs workers of a group to the one that forms the group.
using Event = std::variant<Started, Reported, Checkpointed, Paused, Finished, Stopped, Failed, CheckpointLost,
                           SaveFailed, Notice, HostGained, HostLost, MemberLost, Resized, GroupMessage>;

/// The function to which an executor delivers events. May be called from any thread, even within perform(). A call may
/// issue commands to the executor before it returns: a report is usually answered this way.
using EventSink = std::function<void(Event)>;

/// Hang limits are below this (30 years), for all executors alike.
inline constexpr Seconds longest_hang_timeout = 1e9;

/// What an executor is given when the experiment starts.
struct ExecutorStart {
  std::shared_ptr<const Program> program;
  std::filesystem::path directory;  ///< the experiment's folder; trials/<id> below it belong to the trials
  EventSink sink;
  Seconds hang_timeout = 0;  ///< seconds without report or alive() after which an attempt counts as hung; 0: no limit
  std::uint64_t log_limit = default_log_limit;  ///< bytes kept of each trial's log; 0: all
  /// The network through which the hosts of a group reach each other, as "10.1.0.0/16"; empty: none is named.
  std::string network = {};
  /// For worker processes: an existing folder where checkpoints are written, in the same layout. Empty: `directory`.
  std::filesystem::path checkpoints = {};
  /// For worker processes: further experiment folders in which checkpoints to restore are looked for. They are not
  /// changed.
  std::vector<std::filesystem::path> origins = {};
};

/// The amount of work that an experiment is about to submit.
struct Workload {
  std::optional<std::int64_t> trials;  ///< trials still to be done; nullopt: unknown
  Resources each;                      ///< resources of a trial, or of each of its workers
  int workers = 1;                     ///< minimum number of workers of a trial
  int max_workers = 1;                 ///< maximum number of workers of a trial
  std::int64_t concurrency = 0;        ///< maximum number of concurrent trials; 0: no limit
  std::filesystem::path directory;     ///< the experiment's folder, which need not exist yet
  bool ordered = false;                ///< decisions do not depend on which hosts are there when
  bool quiet = false;                  ///< print errors only
  bool handle_signals = false;         ///< hypertune handles Ctrl-C
  bool exit_if_stuck = false;          ///< … and exits if trials do not return
  std::string name = {};               ///< the experiment's name

  /// How many of `limit` workers can have something to do at the same time.
  int useful_workers(int limit) const;
};

/// An Executor carries out commands. It must obey these rules (the conformance suite checks them):
/// - perform() never blocks; it may be called from any thread, one call at a time.
/// - Events of one attempt come in order and one at a time: Started, then Reported and its answer in turn, then exactly
///   one of Paused, Finished, Stopped, Failed, and no event of that attempt afterwards, not even Checkpointed. After
///   Paused, only a Launch with `parked` continues the attempt; a Stop drops it without an event.
/// - An attempt of several workers is one attempt: rank 0 reports, and its end ends them all. Each Resize is answered
///   by Resized, MemberLost or the attempt's end; events of an earlier generation are not sent.
/// - Commands for an attempt that is over or was never begun are ignored.
/// - wait() blocks until notify(), or the deadline, or (executors that work in the caller's thread) until it has
///   delivered an event; it returns at once if nothing is left to do, and never sleeps past a notify().
/// - Events that belong to no attempt (hosts, notices) may come from start() on, on any thread.
/// - shutdown() ends every attempt without events and leaves no thread, process or timer behind. So does the destructor.
///   After shutdown() the executor may be started again, for another experiment.
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

/// Gives an error that names the member which E lacks.
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

/// Holds any Executor, by value. Copies share the same executor.
class AnyExecutor {
 public:
  // Defined once, for all files.
  AnyExecutor(const AnyExecutor& other);
  AnyExecutor(AnyExecutor&& other) noexcept;
  AnyExecutor& operator=(const AnyExecutor& other);
  AnyExecutor& operator=(AnyExecutor&& other) noexcept;
  ~AnyExecutor();

  template <class E>
    requires(!std::same_as<E, AnyExecutor> && Executor<E>)
  AnyExecutor(E executor) : self_(std::make_shared<Holder<E>>(std::move(executor))) {  // NOLINT: implicit on purpose
    detail::need_part_of<E>();
  }
  /// Gives a readable error where the compiler would only say that no tune() matches these options.
  template <class E>
    requires(!std::same_as<E, AnyExecutor> && !Executor<E>)
  AnyExecutor(const E&) {  // NOLINT
    detail::explain_executor<E>();
  }

  std::vector<Host> hosts() const;
  Seconds now() const { return self_->now(); }
  /// Throws an Error of kind `usage` while the executor runs another experiment. Copies are the same executor.
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline) { self_->wait(deadline); }
  void notify() { self_->notify(); }
  void shutdown() {
    self_->shutdown();
    self_->busy = false;
  }
  /// Sets the time at which a virtual clock goes on after a restart. Executors in real time have no such member.
  void restore_clock(Seconds now) { self_->restore_clock(now); }
  /// How long workers take to start, if that is known beforehand, as in virtual time; else 0.
  Seconds startup() const { return self_->startup(); }
  /// Whether its time is virtual. Then nothing is shown live, and the clock starts at 0.
  bool simulated() const { return self_->simulated(); }
  /// Whether decisions must be made before an event's call returns, so that nothing may be decided on other threads.
  /// True if time is virtual; other executors declare `static constexpr bool is_synchronous = true;`.
  bool synchronous() const { return self_->synchronous(); }
  /// Whether its trials may have several workers (`static constexpr bool runs_gangs = true;`).
  bool gangs() const { return self_->gangs(); }
  std::string name() const;
  /// For executors that acquire hosts for the experiment (they have all three members): prepare() is called before
  /// hosts(), trial_ended() on the strand when a trial has ended for good, and teardown() last, however the run ends.
  /// `unfinished`: it was interrupted, or an error ended it that may pass, so that another run may go on with it.
  bool elastic() const { return self_->elastic(); }
  void prepare(const Workload& workload) { self_->prepare(workload); }
  void trial_ended(TrialId trial) { self_->trial_ended(trial); }
  void teardown(bool unfinished) { self_->teardown(unfinished); }

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
    virtual void teardown(bool unfinished) = 0;
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
      e.teardown(true);
    };
    bool elastic() const override { return is_elastic; }
    void prepare([[maybe_unused]] const Workload& workload) override {
      if constexpr (is_elastic) executor.prepare(workload);
    }
    void trial_ended([[maybe_unused]] TrialId trial) override {
      if constexpr (is_elastic) executor.trial_ended(trial);
    }
    void teardown([[maybe_unused]] bool unfinished) override {
      if constexpr (is_elastic) executor.teardown(unfinished);
    }
    E executor;
  };
  std::shared_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
