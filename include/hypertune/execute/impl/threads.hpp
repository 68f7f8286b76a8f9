// ThreadExecutor: definitions.
#pragma once

#include <hypertune/checkpoint/detail/sealer.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/detail/wakeup_event.hpp>
#include <hypertune/detail/whole.hpp>
#include <hypertune/execute/detail/attempt_machine.hpp>
#include <hypertune/execute/detail/attempt_run.hpp>
#include <hypertune/execute/detail/group/groups.hpp>
#include <hypertune/execute/detail/kept_runs.hpp>
#include <hypertune/execute/threads.hpp>

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

extern "C" void omp_set_num_threads(int) __attribute__((weak));  // defined if the program is linked with OpenMP

namespace hypertune::inline v0 {

class ThreadExecutor::State final : public detail::ExecutorState {
  struct Run {
    enum class Place : std::uint8_t { ready, driven, resting, over };
    explicit Run(Launch l) : launch(std::move(l)) {}
    int member() const { return key_of(launch).second; }
    bool keeps_thread() const { return place == Place::ready || (place == Place::resting && !machine.parked()); }
    Launch launch;
    AttemptMachine machine;
    Place place = Place::ready;
    bool destroyed = false;             // by a worker thread, or about to be
    bool has_thread = false;            // a worker thread runs nothing else until this run has ended or is parked
    std::condition_variable resumed;    // wakes that thread
    std::optional<AttemptRun> attempt;  // set under the lock; otherwise used by the thread that drives the run
    Seconds heard = 0;                  // last sign of life of a step, if there is a hang limit
    std::uint64_t beats = 0;
    bool hung = false;
    std::shared_ptr<Group> group;  // set for a member of a group
  };
  using RunPtr = std::shared_ptr<Run>;
  static RunKey key(const Run& run) { return key_of(run.launch); }

 public:
  explicit State(ThreadOptions options) : options_(std::move(options)) {
    if (!(options_.cpus >= 0)) fail(Errc::usage, "threads: .cpus is {}: it must be 0 or more", options_.cpus);
    if (!(options_.gpus >= 0)) fail(Errc::usage, "threads: .gpus is {}: it must be 0 or more", options_.gpus);
    for (const auto& [name, amount] : options_.custom)
      if (!(amount >= 0)) fail(Errc::usage, "threads: .custom: '{}' is {}: it must be 0 or more", name, amount);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
      for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) cores_.push_back(i);
    if (options_.cpus == 0) options_.cpus = static_cast<double>(std::max<std::size_t>(1, cores_.size()));
  }

  ~State() override { shutdown(); }

  std::vector<Host> hosts() override {
    return {Host{.name = "localhost",
                 .total = {.cpus = options_.cpus, .gpus = options_.gpus, .memory = 0, .custom = options_.custom}}};
  }

  void start(ExecutorStart start) override {
    start_ = std::move(start);
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
    sealer_.emplace(*store_);
    closing_ = false;
  }

  void perform(Command command) override {
    if (groups_.perform(command))
      groups_.work();
    else
      detail::visit([this](auto& c) { on(c); }, command);
  }

  void on(Launch& launch) {
    const std::lock_guard guard(mutex_);
    if (closing_) return;
    RunPtr run;
    if (launch.parked) {
      const auto found = runs_.find(key_of(launch));
      if (found == runs_.end() || !found->second->machine.parked())
        fail(Errc::usage, "trial {} is not parked here", launch.trial);
      run = found->second;
      --parked_;
      run->launch.allocation.lead = std::move(launch.allocation.lead);
      run->machine.resume();
    } else {
      run = std::make_shared<Run>(std::move(launch));
      if (run->launch.seat) take_seat(*run);
      runs_[key(*run)] = run;
      if (dying_.contains(key(*run))) return;  // made ready once the old run is gone: a trial never runs twice at once
    }
    make_ready(std::move(run));
  }
  void on(Continue& c) { answer(c); }
  void on(Pause& c) { answer(c); }
  void on(const Resize&) {}  // for groups that do not exist here
  void on(GroupMessage& m) {
    std::shared_ptr<Group> group;
    {
      const std::lock_guard guard(mutex_);
      if (const auto run = find(m)) group = run->group;
    }
    if (group) group->receive(std::move(m));
  }
  void on(Stop& c) {
    std::shared_ptr<Group> group;
    {
      const std::lock_guard guard(mutex_);
      const auto found = find(c);
      if (found == nullptr) return;
      group = found->group;
      stop(found, c);
    }
    if (group) group->stop();
  }
  void stop(const RunPtr& found, const Stop& c) {
    found->machine.on(c);
    if (found->place == Run::Place::driven) {
      if (found->machine.stepping() && found->attempt) found->attempt->context().request_stop();
    } else if (found->machine.parked()) {
      --parked_;
      dying_.insert(key(*found));
      dead_runs_.push_back(found);  // destroyed by a worker thread, as this runs the user's code
      runs_.erase(key(*found));
      wake_one();
    } else if (found->place == Run::Place::resting) {
      make_ready(found);
    }
  }

  // In place of killing a member: threads cannot be killed, but a late one may still return.
  void ask_to_leave(TrialId trial, Attempt attempt, int member) {
    Stop stop{trial, attempt, false, member};
    on(stop);
  }

  void wait(Seconds deadline) override {
    const bool hangs = start_.hang_timeout > 0;
    for (bool signalled = false; !signalled;) {
      const double left = deadline - run_clock();
      const double look = hangs ? std::clamp(start_.hang_timeout / 4, 0.01, 5.0) : left;
      const Seconds begin = detail::steady_seconds();
      signalled = wakeup_.wait_for(std::min(left, look));
      if (hangs) {
        // A wait that ends so late was one of a process that was stopped, its trials included.
        const Seconds waited = detail::steady_seconds() - begin;
        const std::lock_guard guard(mutex_);
        if (waited > 2 * look)
          for (auto& [trial, run] : runs_) run->heard += waited;
        look_for_hung();
      }
      if (left <= look) break;
    }
  }
  void notify() override { wakeup_.signal(); }

  void shutdown() override {
    std::vector<std::thread> threads;
    std::vector<std::shared_ptr<Group>> groups;
    {
      const std::lock_guard guard(mutex_);
      closing_ = true;
      ready_.clear();
      // Running steps are asked to return. Suspended runs are destroyed by several threads in parallel, as each may
      // take long.
      for (auto run = runs_.begin(); run != runs_.end();) {
        const bool driven = run->second->place == Run::Place::driven;
        if (driven && run->second->attempt) run->second->attempt->context().request_stop();
        if (run->second->group) groups.push_back(run->second->group);
        if (run->second->has_thread)
          run->second->resumed.notify_one();  // that thread destroys it
        else
          dead_runs_.push_back(run->second);
        run = driven ? std::next(run) : runs_.erase(run);
      }
      const std::size_t reapers = std::min(dead_runs_.size(), max_reapers);
      while (threads_.size() < reapers && add_thread()) {}
      threads.swap(threads_);
    }
    for (const auto& group : groups) group->stop();
    work_.notify_all();
    for (auto& thread : threads) thread.join();
    work();  // what is left if no thread could be started
    groups_.clear();
    sealer_.reset();  // finishes checkpoints that were written; the next driver finds them
    runs_.clear();
    kept_.clear();
    parked_ = 0;
    idle_ = 0;
  }

 private:
  // ---- under mutex_ ----
  template <class C>
  RunPtr find(const C& command) {
    const auto found = runs_.find(RunKey(command.trial, command.member));
    return found != runs_.end() && found->second->launch.attempt == command.attempt ? found->second : nullptr;
  }
  void take_seat(Run& run) {
    const Launch& launch = run.launch;
    run.group = std::make_shared<Group>(launch.seat->place, [this, trial = launch.trial, attempt = launch.attempt,
                                                             member = run.member()](GroupMessage m) {
      m.trial = trial;
      m.attempt = attempt;
      m.member = member;
      emit(std::move(m));
    });
  }
  void make_ready(RunPtr run) {
    run->place = Run::Place::ready;
    if (run->has_thread) return run->resumed.notify_one();
    ready_.push_back(std::move(run));
    // A worker thread within the sink looks for work afterwards; waking another one would only move the trial to it.
    if (!in_sink()) wake_one();
  }
  void wake_one() {
    if (idle_ > 0)
      work_.notify_one();
    else if (!closing_ && threads_.size() < max_threads && !add_thread() && threads_.empty())
      fail(Errc::resources, "no thread can be started for a trial: the system's limit is reached (ulimit -u)");
  }
  bool add_thread() {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) { return false; }
    return true;
  }
  void look_for_hung() {
    const Seconds now = detail::steady_seconds();
    for (auto& [trial, run] : runs_) {
      if (run->place != Run::Place::driven || !run->machine.stepping() || !run->attempt || run->hung) continue;
      const auto beats = run->attempt->context().beats();
      if (std::exchange(run->beats, beats) != beats) run->heard = now;
      if (now < run->heard + start_.hang_timeout) continue;
      run->hung = true;
      run->attempt->context().request_stop();
    }
  }
  template <class C>
  void answer(const C& command) {
    const std::lock_guard guard(mutex_);
    const RunPtr run = find(command);
    if (run == nullptr) return;
    run->machine.on(command);
    if (run->place == Run::Place::resting && !run->machine.parked()) make_ready(run);
  }

  // ---- on worker threads ----
  static bool& in_sink() {
    thread_local bool inside = false;
    return inside;
  }
  void emit(Event event) {
    if (closing_.load(std::memory_order_relaxed)) return;
    if (groups_.on_event(event))
      return groups_.work();  // wakes other threads for new work, as this one may wait for them
    in_sink() = true;
    start_.sink(std::move(event));
    in_sink() = false;
  }
  void emit_from_outside(Event event) {  // for threads that run no trials: wakes worker threads for new work
    if (closing_.load(std::memory_order_relaxed)) return;
    if (groups_.on_event(event)) return groups_.work();
    start_.sink(std::move(event));
  }

  // A run keeps its thread from its launch until it has ended or is parked: what a trainer sets for its thread (the
  // current device of CUDA, a thread_local) holds for all its steps.
  void work() {
    std::unique_lock guard(mutex_);
    for (RunPtr own;;) {
      if (closing_ && own) {
        destroy(std::exchange(own, nullptr), guard);
      } else if (!own && !dead_runs_.empty()) {
        RunPtr dead = std::move(dead_runs_.back());
        dead_runs_.pop_back();
        if (!dead_runs_.empty()) wake_one();
        destroy(std::move(dead), guard);
      } else if (closing_) {
        return;
      } else if (own) {
        own->resumed.wait(guard, [&] { return closing_ || own->place == Run::Place::ready; });
        if (!closing_) drive(own, guard);
      } else if (!ready_.empty()) {
        own = std::move(ready_.front());
        ready_.pop_front();
        own->has_thread = true;
        if (!ready_.empty()) wake_one();
        drive(own, guard);
      } else {
        ++idle_;
        work_.wait(guard, [this] { return closing_ || !ready_.empty() || !dead_runs_.empty(); });
        --idle_;
      }
    }
  }
  // Both release the lock meanwhile.
  void destroy(RunPtr dead, std::unique_lock<std::mutex>& guard) {
    // A run that is stopped while the thread that parked it is still in the sink is taken by two threads if the executor
    // closes then.
    const bool first = !std::exchange(dead->destroyed, true);
    guard.unlock();
    const RunKey gone = key(*dead);
    if (first) dead->attempt.reset();  // now, even if the thread that parked it still holds a pointer
    dead.reset();
    guard.lock();
    if (const auto died = dying_.find(gone); died != dying_.end()) {
      dying_.erase(died);
      const auto next = runs_.find(gone);
      if (next != runs_.end() && !closing_) make_ready(next->second);
    }
  }
  void drive(RunPtr& own, std::unique_lock<std::mutex>& guard) {
    own->place = Run::Place::driven;
    guard.unlock();
    drive(own);
    guard.lock();
    if (closing_ || own->keeps_thread()) return;
    own->has_thread = false;
    guard.unlock();
    own.reset();
    guard.lock();
  }

  // Drives a run until it would have to wait: to its end, a pause, or a report whose answer is still to come.
  void drive(const RunPtr& run) {
    const TrialId trial = run->launch.trial;
    const Attempt attempt = run->launch.attempt;
    try {
      bind_to(run->launch.allocation.lead);  // calls the user's bind_slot, which may throw
      while (const auto action = next_action(run)) {
        if (action->save) save(run, action->what == AttemptMachine::Do::end);
        switch (action->what) {
          case AttemptMachine::Do::begin:
            begin(run);
            emit(Started{trial, attempt, run->attempt->steps(), run->member()});
            break;
          case AttemptMachine::Do::step:
            if (!step(run)) return;
            break;
          case AttemptMachine::Do::park: return rest(run, action->keep);
          default: stop_and_save(run); return leave(run, Stopped{trial, attempt, run->member()}, true);
        }
      }
    } catch (...) {
      Cause cause = cause_of_current_exception();
      const bool stopped = asked_to_stop(run);  // then its exception does not matter
      if (stopped) save_left(run);
      if (!stopped && run->attempt)
        cause = run->attempt->blame(std::move(cause),
                                    [&](const CheckpointInfo& c, const std::string& why) { lose(trial, c, why); });
      leave(run, stopped ? Event(Stopped{trial, attempt, run->member()})
                         : Event(Failed{trial, attempt, std::move(cause), run->member()}));
    }
  }

  // The next action for the run; nullopt if the run waits now, or the executor is closing.
  std::optional<AttemptMachine::Action> next_action(const RunPtr& run) {
    const std::lock_guard guard(mutex_);
    if (closing_) {
      retire(run);
      return std::nullopt;
    }
    const auto action = run->machine.next();
    if (!ready_.empty()) wake_one();  // made ready within the sink; this thread stays with its run
    if (action.what == AttemptMachine::Do::wait) {
      run->place = Run::Place::resting;
      return std::nullopt;
    }
    if (start_.hang_timeout > 0) run->heard = detail::steady_seconds();
    return action;
  }

  // Does a step. False: the attempt is over, or the executor is closing.
  bool step(const RunPtr& run) {
    const TrialId trial = run->launch.trial;
    const Attempt attempt = run->launch.attempt;
    run->attempt->proceed(run->launch.allocation.lead);
    auto done = run->attempt->step();
    if (!may_go_on(run, done.report.has_value())) return false;
    if (done.refused) emit(std::move(*done.refused));
    if (done.report) {
      emit(Reported{trial, attempt, std::move(*done.report), std::move(done.made), run->member(), false,
                    run->attempt->context().requested_workers()});
      return true;
    }
    if (done.made) emit(Checkpointed{trial, attempt, std::move(*done.made), run->member()});
    leave(run,
          done.stopped ? Event(Stopped{trial, attempt, run->member()}) : Event(Finished{trial, attempt, run->member()}),
          true);
    return false;
  }

  // To be called after a step: false if the executor is closing. Throws if the step counts as hung.
  bool may_go_on(const RunPtr& run, bool reports) {
    const std::lock_guard guard(mutex_);
    if (closing_) {
      retire(run);
      return false;
    }
    if (run->hung && !run->machine.stop_requested())
      throw TrialFailure(
          Cause{.text = fmt::format("hung: {} for {} s",
                                    start_.program->external() ? "nothing was printed" : "no report and no alive()",
                                    start_.hang_timeout)});
    reports ? run->machine.reported() : run->machine.ended();
    return true;
  }
  // To be called under mutex_, while closing, or when the run is over. While closing, its thread will destroy it.
  void retire(const RunPtr& run) {
    run->place = Run::Place::over;
    const auto found = runs_.find(key(*run));
    if (found != runs_.end() && found->second == run) runs_.erase(found);
  }

  bool asked_to_stop(const RunPtr& run) {
    const std::lock_guard guard(mutex_);
    return run->machine.stop_requested();
  }

  void begin(const RunPtr& run) {
    const Launch& launch = run->launch;
    std::optional<AttemptRun> previous;
    if (start_.program->keeps()) {
      std::vector<AttemptRun> in_the_way;  // destroyed without the lock
      const std::lock_guard guard(mutex_);
      previous = kept_.take(launch.allocation.lead, in_the_way);
    }
    AttemptRun attempt(
        *store_, start_.directory, launch,
        [&](const CheckpointInfo& c, const std::string& why) { lose(launch.trial, c, why); }, start_.log_limit,
        run->group);
    {
      const std::lock_guard guard(mutex_);
      run->attempt.emplace(std::move(attempt));
      if (run->machine.stop_requested() || closing_) run->attempt->context().request_stop();
    }
    run->attempt->begin(*start_.program, previous ? &*previous : nullptr);
  }

  void lose(TrialId trial, const CheckpointInfo& checkpoint, const std::string& why) {
    emit(CheckpointLost{trial, checkpoint, why});
  }

  // The trial writes the files; the sealer hashes and syncs them in the background.
  void save(const RunPtr& run, bool at_end = false) {
    if (!run->attempt) return;  // stopped before it began
    if (auto writer = at_end ? run->attempt->save_at_end() : run->attempt->save()) seal(run, std::move(*writer));
  }
  // Saves the checkpoint that an attempt has left which was told to end within a step, if it was told to save.
  void save_left(const RunPtr& run) {
    {
      const std::lock_guard guard(mutex_);
      if (!run->attempt || !run->machine.save_requested()) return;
    }
    try {
      if (auto writer = run->attempt->save_left()) seal(run, std::move(*writer));
    } catch (const std::exception& error) { emit(SaveFailed{run->launch.trial, run->attempt->steps(), error.what()}); }
  }
  void seal(const RunPtr& run, CheckpointWriter writer) {
    const Attempt attempt = run->launch.attempt;
    sealer_->submit(std::move(writer), [this, attempt, member = run->member()](SealResult result) {
      tell_saved(std::move(result), attempt, [this](Event event) { emit_from_outside(std::move(event)); }, member);
    });
  }
  void stop_and_save(const RunPtr& run) {
    if (!run->attempt) return;
    if (auto made = run->attempt->stop_and_save())
      emit(Checkpointed{run->launch.trial, run->launch.attempt, std::move(*made), run->member()});
  }

  void rest(const RunPtr& run, bool keep) {
    if (run->attempt->replaceable() && (!keep || (!run->group && full()))) {
      save(run);
      stop_and_save(run);
      return leave(run, Paused{run->launch.trial, run->launch.attempt, false, run->member()});
    }
    sealer_->wait(run->launch.trial);
    run->attempt->park();
    bool stopped = false;
    {
      const std::lock_guard guard(mutex_);
      stopped = run->machine.stop_requested();
      if (!stopped) {
        run->place = Run::Place::resting;
        ++parked_;
      }
    }
    if (stopped) return leave(run, Stopped{run->launch.trial, run->launch.attempt, run->member()});
    emit(Paused{run->launch.trial, run->launch.attempt, true, run->member()});
  }
  bool full() {
    const std::lock_guard guard(mutex_);
    return parked_ >= options_.max_parked;
  }

  // The run is over: frees what it holds before the event is sent, except what another trial can reuse.
  void leave(const RunPtr& run, Event event, bool in_order = false) {
    sealer_->wait(run->launch.trial);
    std::optional<AttemptRun> dead;
    {
      const std::lock_guard guard(mutex_);
      dead.swap(run->attempt);
      retire(run);
      if (in_order && dead && start_.program->keeps() && !closing_) {
        kept_.keep(std::move(*dead));
        dead.reset();
      }
    }
    dead.reset();
    emit(std::move(event));
  }

  void bind_to(const Slot& slot) {
    if (omp_set_num_threads != nullptr) omp_set_num_threads(detail::whole_within(slot.resources.cpus, 1, 4096));
    if (options_.pin) {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int core : slot.cpus)
        if (core < static_cast<int>(cores_.size())) CPU_SET(cores_[static_cast<std::size_t>(core)], &set);
      if (CPU_COUNT(&set) == 0)  // no cores of its own: use all, not those of the previous trial on this thread
        for (const int core : cores_) CPU_SET(core, &set);
      if (CPU_COUNT(&set) > 0) ::sched_setaffinity(0, sizeof set, &set);
    }
    if (options_.bind_slot) options_.bind_slot(slot);
  }

  static constexpr std::size_t max_threads = 4096, max_reapers = 64;
  ThreadOptions options_;
  std::vector<int> cores_;
  ExecutorStart start_;
  std::optional<LocalCheckpointStore> store_;
  std::optional<CheckpointSealer<LocalCheckpointStore>> sealer_;

  std::mutex mutex_;
  std::condition_variable work_;
  detail::WakeupEvent wakeup_;  // wakes the thread in wait()
  std::deque<RunPtr> ready_;
  std::map<RunKey, RunPtr> runs_;
  std::vector<RunPtr> dead_runs_;  // dropped while suspended; destroyed by a worker thread
  std::set<RunKey> dying_;         // runs in dead_runs_ or being destroyed, while the executor goes on
  detail::KeptRuns kept_;
  std::size_t parked_ = 0;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  std::atomic<bool> closing_{false};
  Groups groups_{{.down = [this](Command command) { detail::visit([this](auto& c) { on(c); }, command); },
                  .kill = [this](TrialId trial, Attempt attempt, int member) { ask_to_leave(trial, attempt, member); },
                  .up = [this](Event event) { start_.sink(std::move(event)); }}};
};

ThreadExecutor::ThreadExecutor(ThreadOptions options) : ExecutorHandle(std::make_shared<State>(std::move(options))) {}

}  // namespace hypertune::inline v0
