// SimulatedExecutor: definitions.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/detail/attempt_machine.hpp>
#include <hypertune/execute/detail/attempt_run.hpp>
#include <hypertune/execute/detail/kept_runs.hpp>
#include <hypertune/execute/detail/simulated_group.hpp>
#include <hypertune/execute/detail/simulated_machines.hpp>
#include <hypertune/execute/simulated.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <queue>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <variant>

namespace hypertune::inline v0 {

class SimulatedExecutor::State final : public detail::ExecutorState {
 public:
  explicit State(SimulationOptions options) : machines_(std::move(options)) {}

  std::vector<Host> hosts() override { return machines_.hosts(); }
  Seconds now() override { return now_; }
  Seconds startup() const { return machines_.options().startup_seconds; }
  void restore_clock(Seconds now) {
    now_ = std::max(now_, now);
    events_ = {};
    schedule_outages();
  }

  void start(ExecutorStart start) override {
    start_ = std::move(start);
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
    now_ = 0;
    schedule_outages();
  }

  void perform(Command command) override {
    detail::visit([this](auto& c) { this->on(c); }, command);
  }

  void wait(Seconds deadline) override {
    constexpr int burst = 4096;  // events before wait() returns to the Tuner
    notified_ = false;
    for (int i = 0; i < burst && !notified_; ++i) {
      if (events_.empty() || events_.top().time > deadline) {
        now_ = std::max(now_, deadline);
        return;
      }
      const Due due = events_.top();
      events_.pop();
      now_ = std::max(now_, due.time);
      deliver(due);
    }
  }
  void notify() override { notified_ = true; }
  void shutdown() override {
    runs_.clear();
    kept_.clear();
    events_ = {};
    notified_ = true;
  }

 private:
  enum class Kind : std::uint8_t { lost, back, formed, step, failure };
  struct Due {
    Seconds time;
    Kind kind;
    TrialId trial;        // or the worker, for lost and back
    std::uint64_t fence;  // fence of the run; for lost: 1 if for good
    friend bool operator>(const Due& a, const Due& b) {
      return std::tie(a.time, a.kind, a.trial) > std::tie(b.time, b.kind, b.trial);
    }
  };
  struct Run {
    Launch launch;
    AttemptMachine machine = {};
    std::optional<AttemptRun> attempt = {};
    int steps = 0;            // done
    int saved = 0;            // steps done at the last save
    Seconds at = 0;           // time of the run; behind now_ while it catches up after a restart
    std::uint64_t fence = 0;  // of the event that ends its step; 0: it waits for an answer, or for its workers
    bool started = false;
    std::optional<SimulatedGroup> group = {};  // set for several workers
    std::uint64_t forming = 0;                 // fence of the event when its workers are ready
    bool resizing = false;                     // a Resized is to be sent then
    int failing = -1;                          // rank whose failure ends the step; -1: none
  };

  void schedule_outages() {
    for (const auto& outage : machines_.options().outages) {
      const bool for_good = outage.until <= outage.at;
      if (for_good || outage.until > now_) events_.push({outage.at, Kind::lost, outage.worker, for_good ? 1U : 0U});
      if (!for_good && outage.until >= now_) events_.push({outage.until, Kind::back, outage.worker, 0});
    }
  }

  void on(Launch& launch) {
    auto& run = runs_[launch.trial];
    const bool held = launch.parked && run.machine.parked() && run.launch.attempt == launch.attempt;
    if (held) {
      run.machine.resume();
      if (run.attempt) run.attempt->proceed(launch.allocation.lead);
      run.launch.allocation = std::move(launch.allocation);
    } else {
      run = {};
      run.launch = std::move(launch);
      run.steps = run.launch.next_step;
      run.saved = run.launch.restore.empty() ? 0 : run.launch.restore.front().steps;
    }
    run.machine.next();  // it begins, or goes on
    const auto under_way = std::exchange(run.launch.under_way, std::nullopt);
    run.at = under_way ? under_way->since : now_;
    if (under_way && under_way->reported) run.machine.reported();
    if (under_way && !under_way->growths.empty()) return take_up(run, *under_way);
    const bool trains = run.machine.stepping(), forming = under_way && under_way->forming;
    const int workers = run.launch.allocation.workers();
    if (workers == 1 && !run.group && !forming) {
      if (!trains) return;
      run.at += startup();
      return schedule(run);
    }
    if (forming ? run.at + startup() < now_ : !trains) {  // they were ready before
      if (forming) run.at += startup();
      run.group.emplace(run.launch.allocation);
      if (trains) schedule(run);
      return;
    }
    run.resizing = forming;
    run.group.emplace();
    form(run, {}, std::vector<int>(static_cast<std::size_t>(workers), -1));
  }
  // Continues a run in which workers may still be joining that an earlier driver has asked for.
  void take_up(Run& run, const UnderWay& under_way) {
    run.group = SimulatedGroup::joined(under_way.growths, run.launch.allocation, startup());
    run.resizing = true;
    if (under_way.forming) run.at += startup();
    if (run.machine.stepping()) go_on(run);
  }
  void on(Resize& c) {
    Run* run = find(c.trial, c.attempt);
    if (run == nullptr || run->machine.parked()) return;
    SimulatedGroup& group = group_of(*run);
    if (c.allocation.generation <= group.generation()) return;
    if (group.changes() && group.stands_ready(run->at)) group.take_over();  // it would have done so with the answer
    if (!group.trains()) run->at = now_;
    const Allocation was = std::exchange(run->launch.allocation, std::move(c.allocation));
    run->resizing = true;
    form(*run, was, std::move(c.from));
  }
  void on(const GroupMessage&) {}  // simulated workers exchange no messages
  // New workers are ready after the startup time. Dismissed ones are gone at once, or after their present step.
  void form(Run& run, const Allocation& was, std::vector<int> from) {
    const std::vector<Seconds> ready(from.size(), now_ + startup());
    auto missing = run.group->form({run.launch.allocation.generation, std::move(from)}, was, ready, now_);
    run.forming = 0;
    if (!missing.empty()) return tell_lost(run, std::move(missing), lost_worker());  // lost meanwhile
    if (!run.group->changes()) return wait_for_workers(run);
    // A step that begins at this very time can be done by the new generation instead.
    if (run.fence == 0 || run.at < now_ || !run.group->stands_ready(run.at)) return;
    run.fence = 0;
    go_on(run);
  }
  void wait_for_workers(Run& run) {
    run.forming = ++fences_;
    events_.push({run.at + startup(), Kind::formed, run.launch.trial, run.forming});
  }
  void formed(Run& run) {
    run.forming = 0;
    run.group->take_over();
    const Resized resized{run.launch.trial, run.launch.attempt, run.group->generation()};
    if (run.attempt) run.attempt->context().move_to(run.launch.allocation.lead);
    if (run.machine.stepping()) schedule(run);
    if (std::exchange(run.resizing, false)) start_.sink(resized);
  }
  // Goes on with the next step, in the newest generation if all its workers are ready. If no workers train, formed()
  // will do it.
  void go_on(Run& run) {
    if (run.group && run.group->changes() && run.group->stands_ready(run.at))
      formed(run);
    else if (!run.group || run.group->trains())
      schedule(run);
  }
  SimulatedGroup& group_of(Run& run) {
    if (!run.group) run.group.emplace(run.launch.allocation);
    return *run.group;
  }
  // Members of a run are lost: the attempt goes on if any are left.
  void lose(TrialId trial, Attempt attempt, const std::vector<int>& members, Cause cause) {
    Run* run = find(trial, attempt);
    if (run == nullptr) return;
    auto loss = group_of(*run).lose(members);
    if (loss.halts) {
      run->fence = 0;  // an interrupted step is done again
      run->forming = 0;
      if (loss.for_good) return fail_run(trial, attempt, std::move(cause));
    } else if (loss.ranks.empty()) {
      return;
    }
    if (!loss.ranks.empty()) return tell_lost(*run, std::move(loss.ranks), std::move(cause));
    run->at = now_;  // the lost ones were to leave: the newest generation is not affected
    wait_for_workers(*run);
  }
  void tell_lost(const Run& run, std::vector<int> ranks, Cause cause) {
    const auto& [trial, attempt] = std::pair(run.launch.trial, run.launch.attempt);
    if (run.group->present() == 0) return fail_run(trial, attempt, std::move(cause));
    start_.sink(MemberLost{trial, attempt, run.group->generation(), std::move(ranks), std::move(cause)});
  }
  static Cause lost_worker() { return {.source = FailureSource::infrastructure, .text = "its worker was lost"}; }
  template <class C>
  void on(const C& command) {  // Continue, Pause or Stop
    Run* run = find(command.trial, command.attempt);
    if (run == nullptr || !(run->machine.expects_answer() || std::is_same_v<C, Stop>)) return;
    const bool parked = run->machine.parked();
    run->machine.on(command);
    const auto action = run->machine.next();
    if (action.save && run->fence == 0 && !save(*run)) return;  // within a step nothing can be saved
    switch (action.what) {
      case AttemptMachine::Do::step: return go_on(*run);
      case AttemptMachine::Do::park:
        if (run->attempt) run->attempt->park();
        run->forming = 0;
        return start_.sink(Paused{command.trial, command.attempt, true});
      case AttemptMachine::Do::end:
        runs_.erase(command.trial);
        if (!parked) start_.sink(Stopped{command.trial, command.attempt});
        return;
      default: return;
    }
  }

  Run* find(TrialId trial, Attempt attempt) {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second.launch.attempt == attempt ? &found->second : nullptr;
  }

  // Schedules the end of the present step.
  void schedule(Run& run) {
    const Allocation& newest = run.launch.allocation;
    const auto outcome = machines_.outcome(run.launch, run.group ? run.group->training(newest) : newest, run.steps);
    run.failing = outcome.failed;
    run.fence = ++fences_;
    events_.push(
        {run.at + outcome.after, outcome.failed < 0 ? Kind::step : Kind::failure, run.launch.trial, run.fence});
  }

  void lose_worker(int worker, bool for_good) {
    struct Victim {
      TrialId trial;
      Attempt attempt;
      std::vector<int> members;
    };
    std::vector<Victim> victims;
    for (auto it = runs_.begin(); it != runs_.end();) {
      const Run& run = it->second;
      auto members = members_on(run, worker);
      const bool here = !members.empty(), parked = run.machine.parked();
      if (here && !parked) victims.push_back({it->first, run.launch.attempt, std::move(members)});
      it = here && parked ? runs_.erase(it) : std::next(it);  // no event is sent for parked runs
    }
    std::sort(victims.begin(), victims.end(), [](const auto& a, const auto& b) { return a.trial < b.trial; });
    start_.sink(HostLost{worker, "scripted outage", for_good});
    for (const auto& [trial, attempt, members] : victims) lose(trial, attempt, members, lost_worker());
  }
  static std::vector<int> members_on(const Run& run, int worker) {
    if (run.group) return run.group->members_on(worker, run.launch.allocation);
    return run.launch.allocation.lead.host == worker ? std::vector{0} : std::vector<int>{};
  }

  void deliver(const Due& due) {
    if (due.kind == Kind::lost) return lose_worker(static_cast<int>(due.trial), due.fence != 0);
    if (due.kind == Kind::back) return start_.sink(HostGained{static_cast<int>(due.trial)});
    const auto found = runs_.find(due.trial);
    const auto fence = [&] { return due.kind == Kind::formed ? found->second.forming : found->second.fence; };
    if (found == runs_.end() || fence() != due.fence) return;  // the run was stopped meanwhile
    Run& run = found->second;
    const Attempt attempt = run.launch.attempt;
    run.at = due.time;
    if (due.kind == Kind::formed) return formed(run);
    if (due.kind == Kind::failure)
      return lose(due.trial, attempt, {group_of(run).trainer(run.failing)},
                  {.source = FailureSource::infrastructure, .text = "simulated failure"});
    AttemptRun::Step done;
    try {
      if (!run.attempt) begin(run);
      if (!std::exchange(run.started, true)) {
        say_lost();
        start_.sink(Started{due.trial, attempt, run.steps});
        if (const auto still = runs_.find(due.trial); still == runs_.end() || still->second.fence != due.fence) return;
      }
      run.fence = 0;
      done = run.attempt->step();
    } catch (...) { return fail_run(due.trial, attempt, cause_of_current_exception()); }
    if (!done.report) {
      if (done.made) start_.sink(Checkpointed{due.trial, attempt, std::move(*done.made)});
      end_in_order(due.trial);
      return start_.sink(Finished{due.trial, attempt});
    }
    run.steps = run.attempt->steps();
    run.machine.reported();
    const int wanted = run.attempt->context().requested_workers();
    start_.sink(Reported{due.trial, attempt, std::move(*done.report), std::move(done.made), 0, false, wanted});
  }

  // Begins the program. After a restart, repeats the steps since the newest checkpoint, up to where the worker was
  // before the driver died.
  void begin(Run& run) {
    run.attempt.emplace(
        *store_, start_.directory, run.launch,
        [&](const CheckpointInfo& checkpoint, const std::string& why) {
          lost_.push_back({run.launch.trial, checkpoint, why});  // sent later, as the sink may end the run
        },
        start_.log_limit);
    std::vector<AttemptRun> in_the_way;
    auto previous = kept_.take(run.launch.allocation.lead, in_the_way);
    in_the_way.clear();
    run.attempt->begin(*start_.program, previous ? &*previous : nullptr);
    const int from = run.attempt->steps();
    const int newest = run.launch.restore.empty() ? 0 : run.launch.restore.front().steps;
    const bool held = run.launch.next_step > newest;  // the worker had steps in memory that no checkpoint has
    run.saved = from;
    if (!held) run.steps = from;
    while (run.attempt->steps() < run.steps && run.attempt->step().report) {}
  }

  bool save(Run& run) {
    if (run.saved == run.steps) return true;
    const TrialId trial = run.launch.trial;
    const Attempt attempt = run.launch.attempt;
    try {
      if (!run.attempt) begin(run);
      auto writer = run.attempt->save();
      if (!writer) return true;
      auto sealed = seal(*store_, std::move(*writer));
      run.saved = run.steps;
      say_lost();
      tell_saved(std::move(sealed), attempt, start_.sink);
      return true;
    } catch (...) {
      fail_run(trial, attempt, cause_of_current_exception());
      return false;
    }
  }

  void say_lost() {
    for (auto& lost : std::exchange(lost_, {})) start_.sink(std::move(lost));
  }

  void end_in_order(TrialId trial) {
    const auto node = runs_.extract(trial);
    if (node && node.mapped().attempt && start_.program->keeps()) kept_.keep(std::move(*node.mapped().attempt));
  }
  void fail_run(TrialId trial, Attempt attempt, Cause cause) {
    runs_.erase(trial);
    say_lost();
    start_.sink(Failed{trial, attempt, std::move(cause)});
  }

  SimulatedMachines machines_;
  ExecutorStart start_;
  std::optional<LocalCheckpointStore> store_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> events_;
  std::unordered_map<TrialId, Run> runs_;
  detail::KeptRuns kept_;
  std::vector<CheckpointLost> lost_;  // CheckpointLost events still to be sent
  Seconds now_ = 0;
  std::uint64_t fences_ = 0;
  bool notified_ = false;
};

SimulatedExecutor::SimulatedExecutor(SimulationOptions options)
    : ExecutorHandle(std::make_shared<State>(std::move(options))) {}
Seconds SimulatedExecutor::startup() const { return state<State>().startup(); }
void SimulatedExecutor::restore_clock(Seconds now) { state<State>().restore_clock(now); }

}  // namespace hypertune::inline v0
