// ThreadExecutor: trials on threads of this process. The lowest overhead; a crash takes everything with it.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/sealer.hpp>
#include <hypertune/execute/attempt_run.hpp>
#include <hypertune/execute/executor.hpp>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

extern "C" void omp_set_num_threads(int) __attribute__((weak));  // OpenMP's, where the program is linked with it

namespace hypertune {

/// What the threads may use.
struct ThreadOptions {
  double cpus = 0;                              ///< what trials may ask for in all; 0: the machine's cores
  double gpus = 0;                              ///< devices that trials may ask for
  std::map<std::string, double> custom = {};    ///< further resources by name
  bool pin = false;                             ///< bind each trial's thread to the cores of its slot
  std::function<void(const Slot&)> setup = {};  ///< called on a trial's thread before it runs there (cudaSetDevice …)
};

/// Seconds since the Unix epoch.
inline Seconds wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Runs each trial on a thread of its own while it holds a slot. A report's answer usually comes from within the sink's
/// call, and the same thread goes on with the next step; a thread whose trial has ended takes the next launch the same
/// way. A paused trial is a suspended coroutine (or an object at rest): it holds memory but no thread. Threads cannot
/// be killed: a step that never returns keeps shutdown() waiting (processes do not have this limit).
class ThreadExecutor {
 public:
  explicit ThreadExecutor(ThreadOptions options = {}) : self_(std::make_unique<State>(std::move(options))) {}
  ThreadExecutor(ThreadExecutor&&) noexcept = default;
  ThreadExecutor& operator=(ThreadExecutor&&) noexcept = default;
  ~ThreadExecutor() {
    if (self_) self_->shutdown();
  }

  std::vector<Host> hosts() const { return self_->hosts(); }
  Seconds now() const { return wall_clock(); }
  void start(ExecutorStart start) { self_->start(std::move(start)); }
  void perform(Command command) {
    std::visit([&](auto& c) { self_->on(c); }, command);
  }
  void wait(Seconds deadline) { self_->wait(deadline); }
  void notify() { self_->notify(); }
  void shutdown() { self_->shutdown(); }
  std::string name() const { return "threads"; }

 private:
  struct Run {
    enum class State : std::uint8_t { ready, stepping, reporting, waiting, parked };
    explicit Run(Launch l) : launch(std::move(l)) {}
    Launch launch;
    State state = State::ready;
    std::optional<AttemptRun> attempt;
    int steps = 0;   // done
    int saved = -1;  // steps done at the last save
    std::optional<std::variant<Continue, Pause, Stop>> answer;
    std::optional<Stop> stop;  // asked for at any time
  };
  using RunPtr = std::shared_ptr<Run>;

  class State {
   public:
    explicit State(ThreadOptions options) : options_(std::move(options)) {
      cpu_set_t set;
      CPU_ZERO(&set);
      if (::sched_getaffinity(0, sizeof set, &set) == 0)
        for (int i = 0; i < CPU_SETSIZE; ++i)
          if (CPU_ISSET(i, &set)) cores_.push_back(i);
      if (options_.cpus <= 0) options_.cpus = static_cast<double>(std::max<std::size_t>(1, cores_.size()));
    }

    std::vector<Host> hosts() const {
      return {Host{.name = "localhost",
                   .total = {.cpus = options_.cpus, .gpus = options_.gpus, .memory = 0, .custom = options_.custom}}};
    }

    void start(ExecutorStart start) {
      start_ = std::move(start);
      store_.emplace(start_.directory);
      sealer_.emplace(*store_);
      closing_ = false;
    }

    void on(Launch& launch) {
      const std::lock_guard guard(mutex_);
      if (closing_) return;
      RunPtr run;
      if (launch.parked) {
        const auto found = runs_.find(launch.trial);
        if (found == runs_.end() || found->second->state != Run::State::parked)
          fail(Errc::usage, "trial {} is not parked here", launch.trial);
        run = found->second;
        run->launch.slot = std::move(launch.slot);
        run->answer = Continue{launch.trial, launch.attempt, false};
      } else {
        run = std::make_shared<Run>(std::move(launch));
        runs_[run->launch.trial] = run;
      }
      make_ready(std::move(run));
    }
    void on(Continue& c) { answer(c.trial, c.attempt, c); }
    void on(Pause& c) { answer(c.trial, c.attempt, c); }
    void on(Stop& c) {
      RunPtr dropped;  // destroyed after the lock is released: it is the user's code
      const std::lock_guard guard(mutex_);
      const auto found = find(c.trial, c.attempt);
      if (found == nullptr) return;
      switch (found->state) {
        case Run::State::parked:
          dropped = found;
          runs_.erase(c.trial);
          graveyard_.push_back(std::move(dropped));
          wake_one();
          break;
        case Run::State::waiting:
          found->stop = c;
          make_ready(found);
          break;
        case Run::State::stepping:
          if (found->attempt) found->attempt->context().request_stop();
          [[fallthrough]];
        default: found->stop = c; break;
      }
    }

    void wait(Seconds deadline) {
      std::unique_lock guard(mutex_);
      const double left = std::clamp(deadline - wall_clock(), 0.0, 3600.0);
      caller_.wait_for(guard, std::chrono::duration<double>(left), [this] { return notified_; });
      notified_ = false;
    }
    void notify() {
      {
        const std::lock_guard guard(mutex_);
        notified_ = true;
      }
      caller_.notify_all();
    }

    void shutdown() {
      std::vector<std::thread> threads;
      {
        const std::lock_guard guard(mutex_);
        closing_ = true;
        for (auto& [trial, run] : runs_)
          if (run->state == Run::State::stepping && run->attempt) run->attempt->context().request_stop();
        threads.swap(threads_);
      }
      work_.notify_all();
      for (auto& thread : threads) thread.join();
      sealer_.reset();  // finishes what was written; nobody hears of it any more, the next driver finds it
      ready_.clear();
      runs_.clear();
      graveyard_.clear();
      idle_ = 0;
    }

   private:
    // ---- under mutex_ ----
    RunPtr find(TrialId trial, Attempt attempt) {
      const auto found = runs_.find(trial);
      return found != runs_.end() && found->second->launch.attempt == attempt ? found->second : nullptr;
    }
    void make_ready(RunPtr run) {
      run->state = Run::State::ready;
      ready_.push_back(std::move(run));
      // A worker inside the sink looks for work when it comes out; waking another one would only move the trial.
      if (!in_sink()) wake_one();
    }
    void wake_one() {
      if (idle_ > 0)
        work_.notify_one();
      else if (!closing_ && threads_.size() < most_threads)
        threads_.emplace_back([this] { work(); });
    }
    template <class C>
    void answer(TrialId trial, Attempt attempt, const C& command) {
      const std::lock_guard guard(mutex_);
      const RunPtr run = find(trial, attempt);
      if (run == nullptr) return;
      run->answer = command;
      if (run->state == Run::State::waiting) make_ready(run);
    }

    // ---- on worker threads ----
    static bool& in_sink() {
      thread_local bool inside = false;
      return inside;
    }
    void emit(Event event) {
      if (closing_.load(std::memory_order_relaxed)) return;
      in_sink() = true;
      start_.sink(std::move(event));
      in_sink() = false;
    }
    void emit_from_outside(Event event) {  // on a thread that runs no trials: what it sets ready is for others
      if (!closing_.load(std::memory_order_relaxed)) start_.sink(std::move(event));
    }

    void work() {
      std::unique_lock guard(mutex_);
      for (;;) {
        if (!graveyard_.empty()) {
          auto dead = std::move(graveyard_);
          graveyard_.clear();
          guard.unlock();
          dead.clear();
          guard.lock();
        }
        if (closing_) return;
        if (ready_.empty()) {
          ++idle_;
          work_.wait(guard, [this] { return closing_ || !ready_.empty() || !graveyard_.empty(); });
          --idle_;
          continue;
        }
        RunPtr run = std::move(ready_.front());
        ready_.pop_front();
        if (!ready_.empty()) wake_one();
        run->state = Run::State::stepping;
        guard.unlock();
        drive(run);
        run.reset();
        guard.lock();
      }
    }

    // Takes a run as far as it goes without waiting: to its end, a pause, or a report whose answer is still to come.
    void drive(const RunPtr& run) {
      const TrialId trial = run->launch.trial;
      const Attempt attempt = run->launch.attempt;
      try {
        settle_on(run->launch.slot);  // calls the user's setup, which may throw as well
        if (!run->attempt) {
          if (asked_to_stop(run)) return leave(run, Stopped{trial, attempt});
          begin(run);
          emit(Started{trial, attempt, run->steps});
        }
        for (;;) {
          if (closing_) return;
          if (const auto stop = asked_to_stop(run)) {
            if (stop->save) save(run);
            sealer_->wait(trial);
            return leave(run, Stopped{trial, attempt});
          }
          if (auto command = std::exchange(run->answer, std::nullopt)) {
            if (const auto* go = std::get_if<Continue>(&*command); go != nullptr && go->save) save(run);
            if (const auto* pause = std::get_if<Pause>(&*command)) {
              if (pause->save) save(run);
              sealer_->wait(trial);
              return park(run);
            }
          }
          std::optional<Report> report = run->attempt->step();
          if (!report) {
            sealer_->wait(trial);
            return leave(run, Finished{trial, attempt});
          }
          run->steps = report->step.value_or(run->steps) + 1;
          {
            const std::lock_guard guard(mutex_);
            if (closing_) return;
            run->state = Run::State::reporting;
          }
          emit(Reported{trial, attempt, std::move(*report), std::nullopt});
          const std::lock_guard guard(mutex_);
          if (closing_) return;
          if (!run->answer && !run->stop) {
            run->state = Run::State::waiting;
            return;
          }
          run->state = Run::State::stepping;
          if (!ready_.empty()) wake_one();
        }
      } catch (...) {
        Cause cause = cause_of_current_exception();
        sealer_->wait(trial);  // what is being sealed belongs to this attempt: it is told of before its end
        leave(run, Failed{trial, attempt, std::move(cause)});
      }
    }

    std::optional<Stop> asked_to_stop(const RunPtr& run) {
      const std::lock_guard guard(mutex_);
      return run->stop;
    }

    void begin(const RunPtr& run) {
      const Launch& launch = run->launch;
      AttemptRun begun(
          *start_.program, *store_, start_.directory, launch,
          [&](const CheckpointInfo& c, const std::string& why) { emit(CheckpointLost{launch.trial, c, why}); });
      const std::lock_guard guard(mutex_);
      run->attempt.emplace(std::move(begun));
      run->steps = run->saved = run->attempt->next_step();
    }

    // The trial writes; hashing and syncing go on beside it.
    void save(const RunPtr& run) {
      if (!run->attempt->can_save() || run->saved == run->steps) return;
      run->saved = run->steps;
      const Attempt attempt = run->launch.attempt;
      sealer_->submit(run->attempt->save(run->steps), [this, attempt](SealResult result) {
        if (result.checkpoint)
          emit_from_outside(Checkpointed{result.trial, attempt, std::move(*result.checkpoint)});
        else
          emit_from_outside(Notice{fmt::format("trial {}: the checkpoint after {} steps is lost: {}", result.trial,
                                               result.steps, result.error)});
      });
    }

    void park(const RunPtr& run) {
      {
        const std::lock_guard guard(mutex_);
        run->state = Run::State::parked;
      }
      emit(Paused{run->launch.trial, run->launch.attempt, true});
    }

    // The run is over: what it holds is freed before anybody hears of it.
    void leave(const RunPtr& run, Event event) {
      std::optional<AttemptRun> dead;
      {
        const std::lock_guard guard(mutex_);
        dead.swap(run->attempt);
        const auto found = runs_.find(run->launch.trial);
        if (found != runs_.end() && found->second == run) runs_.erase(found);
      }
      dead.reset();
      emit(std::move(event));
    }

    void settle_on(const Slot& slot) {
      if (omp_set_num_threads != nullptr) omp_set_num_threads(std::max(1, static_cast<int>(slot.resources.cpus)));
      if (options_.pin && !slot.cpus.empty()) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int core : slot.cpus)
          if (core < static_cast<int>(cores_.size())) CPU_SET(cores_[static_cast<std::size_t>(core)], &set);
        if (CPU_COUNT(&set) > 0) ::sched_setaffinity(0, sizeof set, &set);
      }
      if (options_.setup) options_.setup(slot);
    }

    static constexpr std::size_t most_threads = 4096;
    ThreadOptions options_;
    std::vector<int> cores_;
    ExecutorStart start_;
    std::optional<LocalCheckpointStore> store_;
    std::optional<CheckpointSealer<LocalCheckpointStore>> sealer_;

    std::mutex mutex_;
    std::condition_variable work_, caller_;
    std::deque<RunPtr> ready_;
    std::unordered_map<TrialId, RunPtr> runs_;
    std::vector<RunPtr> graveyard_;  // dropped while parked; destroyed by a worker
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool notified_ = false;
    std::atomic<bool> closing_{false};
  };

  std::unique_ptr<State> self_;
};

/// Trials on `cpus` threads' worth of this machine; 0: all its cores.
inline ThreadExecutor threads(double cpus = 0) { return ThreadExecutor(ThreadOptions{.cpus = cpus}); }
inline ThreadExecutor threads(ThreadOptions options) { return ThreadExecutor(std::move(options)); }

}  // namespace hypertune
