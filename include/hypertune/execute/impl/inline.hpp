// InlineExecutor: definitions.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/detail/attempt_machine.hpp>
#include <hypertune/execute/detail/attempt_run.hpp>
#include <hypertune/execute/detail/kept_runs.hpp>
#include <hypertune/execute/inline.hpp>

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

class InlineExecutor::State final : public detail::ExecutorState {
 public:
  std::vector<Host> hosts() override { return {Host{.name = "localhost", .total = {.cpus = 1}}}; }
  void start(ExecutorStart start) override {
    start_ = std::move(start);
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
  }
  void perform(Command command) override { commands_.push(std::move(command)); }

  void wait(Seconds) override {
    if (auto command = commands_.pop()) detail::visit([this](auto& c) { this->carry_out(c); }, *command);
  }
  void notify() override {}
  void shutdown() override {
    commands_.clear();
    runs_.clear();
    kept_.clear();
  }

 private:
  // A queue of commands. They come from any thread and are carried out by the thread in wait().
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
    Launch launch;
    AttemptMachine machine = {};
    std::optional<AttemptRun> attempt = {};
  };

  void carry_out(Launch& launch) {
    const TrialId trial = launch.trial;
    const Attempt attempt = launch.attempt;
    if (!launch.parked) {
      runs_.insert_or_assign(trial, Run{std::move(launch)});
    } else if (Run* run = find(trial, attempt)) {
      run->launch.allocation.lead = std::move(launch.allocation.lead);
      run->machine.resume();
    }
    act(trial, attempt);
  }
  void carry_out(const Resize&) {}  // not used: there are no groups
  void carry_out(const GroupMessage&) {}
  template <class C>
  void carry_out(const C& command) {
    Run* run = find(command.trial, command.attempt);
    if (run == nullptr) return;
    run->machine.on(command);
    act(command.trial, command.attempt);
  }

  Run* find(TrialId trial, Attempt attempt) {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second.launch.attempt == attempt ? &found->second : nullptr;
  }

  // Runs the attempt until it waits for a command or is over.
  void act(TrialId trial, Attempt attempt) {
    try {
      while (Run* run = find(trial, attempt)) {
        const bool parked = run->machine.parked();
        const auto action = run->machine.next();
        if (action.save && run->attempt) save(*run);
        switch (action.what) {
          case AttemptMachine::Do::begin: begin(*run); break;
          case AttemptMachine::Do::step: step(*run); break;
          case AttemptMachine::Do::park: run->attempt->park(); return start_.sink(Paused{trial, attempt, true});
          case AttemptMachine::Do::end: return stop(*run, parked);
          default: return;
        }
      }
    } catch (...) { failed(trial, attempt); }
  }

  void begin(Run& run) {
    const Launch& launch = run.launch;
    run.attempt.emplace(
        *store_, start_.directory, launch,
        [&](const CheckpointInfo& c, const std::string& why) { lose(launch.trial, c, why); }, start_.log_limit);
    std::vector<AttemptRun> in_the_way;
    auto previous = kept_.take(launch.allocation.lead, in_the_way);
    in_the_way.clear();
    run.attempt->begin(*start_.program, previous ? &*previous : nullptr);
    start_.sink(Started{launch.trial, launch.attempt, run.attempt->steps()});
  }

  void step(Run& run) {
    const TrialId trial = run.launch.trial;
    const Attempt attempt = run.launch.attempt;
    run.attempt->proceed(run.launch.allocation.lead);
    auto done = run.attempt->step();
    if (done.refused) start_.sink(std::move(*done.refused));
    if (done.report) {
      run.machine.reported();
      return start_.sink(Reported{trial, attempt, std::move(*done.report), std::move(done.made)});
    }
    if (done.made) start_.sink(Checkpointed{trial, attempt, std::move(*done.made)});
    end_in_order(trial);
    start_.sink(done.stopped ? Event(Stopped{trial, attempt}) : Event(Finished{trial, attempt}));
  }

  // Ends the attempt. No event is sent if it was parked.
  void stop(Run& run, bool parked) {
    const TrialId trial = run.launch.trial;
    const Attempt attempt = run.launch.attempt;
    if (parked) return end_in_order(trial);
    if (auto made = run.attempt ? run.attempt->stop_and_save() : std::nullopt)
      start_.sink(Checkpointed{trial, attempt, std::move(*made)});
    end_in_order(trial);
    start_.sink(Stopped{trial, attempt});
  }

  void save(Run& run) {
    if (auto writer = run.attempt->save())
      tell_saved(seal(*store_, std::move(*writer)), run.launch.attempt, start_.sink);
  }
  void lose(TrialId trial, const CheckpointInfo& checkpoint, const std::string& why) {
    start_.sink(CheckpointLost{trial, checkpoint, why});
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
  Commands commands_;
  std::map<TrialId, Run> runs_;
  detail::KeptRuns kept_;
};

InlineExecutor::InlineExecutor() : ExecutorHandle(std::make_shared<State>()) {}

}  // namespace hypertune::inline v0
