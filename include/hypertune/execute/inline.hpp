// InlineExecutor: one trial at a time in the caller's thread, for a debugger.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/attempt_run.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/kept_runs.hpp>
#include <hypertune/execute/threads.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// Runs everything inside wait(), in the thread that called run() on the Tuner: a breakpoint in a trial shows one
/// stack, and an exception stops where it is thrown (catch throw). Same decisions as any other executor of one slot.
class InlineExecutor {
 public:
  static constexpr bool is_synchronous = true;

  std::vector<Host> hosts() const { return {Host{.name = "localhost", .total = {.cpus = 1}}}; }
  Seconds now() const { return run_clock(); }
  std::string name() const { return "inline"; }

  void start(ExecutorStart start) {
    start_ = std::move(start);
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
  }
  void perform(Command command) { commands_->push(std::move(command)); }

  void wait(Seconds) {
    if (auto command = commands_->pop()) detail::visit([this](auto& c) { this->carry_out(c); }, *command);
  }
  void notify() {}
  void shutdown() {
    commands_->clear();
    runs_.clear();
    kept_.clear();
  }

 private:
  // Commands come from any thread; they are carried out by the one that waits.
  class Commands {
   public:
    void push(Command command) {
      const std::lock_guard guard(mutex_);
      list_.push_back(std::move(command));
    }
    std::optional<Command> pop() {
      const std::lock_guard guard(mutex_);
      if (list_.empty()) return std::nullopt;
      Command command = std::move(list_.front());
      list_.pop_front();
      return command;
    }
    void clear() {
      const std::lock_guard guard(mutex_);
      list_.clear();
    }

   private:
    std::mutex mutex_;
    std::deque<Command> list_;
  };

  struct Run {
    std::optional<AttemptRun> attempt;
    Attempt number = 0;
  };

  void carry_out(Launch& launch) {
    if (launch.parked) {
      if (Run* run = find(launch.trial, launch.attempt)) run->attempt->proceed(launch.allocation.lead);
      return step(launch.trial, launch.attempt);
    }
    Run& run = runs_[launch.trial];
    run.number = launch.attempt;
    try {
      run.attempt.emplace(
          *store_, start_.directory, launch,
          [&](const CheckpointInfo& c, const std::string& why) { lose(launch.trial, c, why); }, start_.log_limit);
      std::vector<AttemptRun> in_the_way;
      auto previous = kept_.take(launch.allocation.lead, in_the_way);
      in_the_way.clear();
      run.attempt->begin(*start_.program, previous ? &*previous : nullptr);
    } catch (...) { return failed(launch.trial, launch.attempt); }
    start_.sink(Started{launch.trial, launch.attempt, run.attempt->steps()});
    step(launch.trial, launch.attempt);
  }
  void carry_out(const Continue& c) {
    if (find(c.trial, c.attempt) == nullptr) return;
    if (!c.save || save(c.trial, c.attempt)) step(c.trial, c.attempt);
  }
  void carry_out(const Pause& c) {
    Run* run = find(c.trial, c.attempt);
    if (run == nullptr || (c.save && !save(c.trial, c.attempt))) return;
    run->attempt->park();
    start_.sink(Paused{c.trial, c.attempt, true});
  }
  void carry_out(const Resize&) {}  // it runs no gangs
  void carry_out(const Stop& c) {
    Run* run = find(c.trial, c.attempt);
    if (run == nullptr) return;
    const bool parked = run->attempt->parked();
    if (c.save && !parked && !save(c.trial, c.attempt)) return;
    try {
      auto made = run->attempt->stop_and_save();
      if (made && !parked) start_.sink(Checkpointed{c.trial, c.attempt, std::move(*made)});
    } catch (...) { return failed(c.trial, c.attempt); }
    end_in_order(c.trial);
    if (!parked) start_.sink(Stopped{c.trial, c.attempt});
  }

  Run* find(TrialId trial, Attempt attempt) {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second.number == attempt ? &found->second : nullptr;
  }

  void step(TrialId trial, Attempt attempt) {
    Run* run = find(trial, attempt);
    if (run == nullptr) return;
    AttemptRun::Step done;
    try {
      done = run->attempt->step();
    } catch (...) { return failed(trial, attempt); }
    if (done.report) return start_.sink(Reported{trial, attempt, std::move(*done.report), std::move(done.made)});
    if (done.made) start_.sink(Checkpointed{trial, attempt, std::move(*done.made)});
    end_in_order(trial);
    if (done.stopped)
      start_.sink(Stopped{trial, attempt});
    else
      start_.sink(Finished{trial, attempt});
  }

  void lose(TrialId trial, const CheckpointInfo& checkpoint, const std::string& why) {
    start_.sink(CheckpointLost{trial, checkpoint, why});
  }

  // False: it failed, and the attempt with it.
  bool save(TrialId trial, Attempt attempt) {
    try {
      auto writer = find(trial, attempt)->attempt->save();
      if (writer) start_.sink(Checkpointed{trial, attempt, store_->seal(std::move(*writer))});
      return true;
    } catch (...) {
      failed(trial, attempt);
      return false;
    }
  }

  void end_in_order(TrialId trial) {
    const auto node = runs_.extract(trial);
    if (node && node.mapped().attempt && start_.program->keeps()) kept_.keep(std::move(*node.mapped().attempt));
  }
  void failed(TrialId trial, Attempt attempt) {
    Cause cause = cause_of_current_exception();
    if (const Run* run = find(trial, attempt); run != nullptr && run->attempt)
      cause = run->attempt->blame(std::move(cause),
                                  [&](const CheckpointInfo& c, const std::string& why) { lose(trial, c, why); });
    runs_.erase(trial);
    start_.sink(Failed{trial, attempt, std::move(cause)});
  }

  ExecutorStart start_;
  std::optional<LocalCheckpointStore> store_;
  std::unique_ptr<Commands> commands_ = std::make_unique<Commands>();  // a mutex does not move
  std::map<TrialId, Run> runs_;
  detail::KeptRuns kept_;
};

inline InlineExecutor run_inline() { return {}; }

}  // namespace hypertune::inline v0
