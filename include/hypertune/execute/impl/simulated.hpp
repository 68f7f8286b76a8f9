// How SimulatedExecutor works.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/attempt_run.hpp>
#include <hypertune/execute/group_machine.hpp>
#include <hypertune/execute/kept_runs.hpp>
#include <hypertune/execute/simulated.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <variant>

namespace hypertune::inline v0 {

class SimulatedExecutor::State {
 public:
  explicit State(SimulationOptions options) : options_(std::move(options)) {
    require_sound();
    speeds_.assign(static_cast<std::size_t>(options_.workers), 1.0);
    if (options_.speed_spread > 0)
      for (int w = 0; w < options_.workers; ++w)
        speeds_[static_cast<std::size_t>(w)] =
            std::exp(options_.speed_spread * normal(derived_rng(options_.seed, {1, static_cast<std::uint64_t>(w)})));
  }

  std::vector<Host> hosts() const {
    std::vector<Host> hosts;
    hosts.reserve(static_cast<std::size_t>(options_.workers));
    for (int w = 0; w < options_.workers; ++w)
      hosts.push_back({.name = detail::format("worker-{}", w), .total = options_.worker});
    return hosts;
  }
  Seconds now() const { return now_; }
  void restore_clock(Seconds now) {
    now_ = std::max(now_, now);
    events_ = {};
    schedule_outages();
  }

  void start(ExecutorStart start) {
    start_ = std::move(start);
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
    now_ = 0;
    schedule_outages();
  }

  void perform(Command command) {
    detail::visit([this](auto& c) { this->on(c); }, command);
  }

  void wait(Seconds deadline) {
    constexpr int burst = 4096;  // events between two looks of the Tuner
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
  void notify() { notified_ = true; }
  void shutdown() {
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
    TrialId trial;        // or the worker
    std::uint64_t fence;  // of the run; or, of a worker that is lost: whether for good
    friend bool operator>(const Due& a, const Due& b) {
      return std::tie(a.time, a.kind, a.trial) > std::tie(b.time, b.kind, b.trial);
    }
  };
  struct Run {
    Launch launch;
    std::optional<AttemptRun> attempt;
    int steps = 0;            // done
    int saved = 0;            // steps done at the last save
    Seconds at = 0;           // where it stands in time; behind the clock while it catches up after a restart
    std::uint64_t fence = 0;  // of the one event that it waits for; 0: it waits for an answer
    bool started = false, parked = false;
    std::optional<GroupMachine> group = {};  // of several workers
    std::uint64_t forming = 0;               // fence of the moment at which they stand ready
    bool answered = false;                   // it is to train as soon as they do
    bool resizing = false;                   // … which is to be told
    int failing = 0;                         // rank whose failure the step is to end in
  };

  void require_sound() const {
    const SimulationOptions& o = options_;
    if (o.workers < 1) fail(Errc::usage, "a simulation needs at least one worker, not {}", o.workers);
    const auto within = [](const char* option, double value, double most, const char* bounds) {
      if (!(value >= 0 && value <= most))  // NaN is not, either
        fail(Errc::usage, "simulation option '{}' is {}, but must be {}", option, value, bounds);
    };
    constexpr double finite = std::numeric_limits<double>::max();
    within("startup_seconds", o.startup_seconds, finite, "a finite number of 0 or more");
    within("speed_spread", o.speed_spread, finite, "a finite number of 0 or more");
    within("straggle_factor", o.straggle_factor, finite, "a finite number of 0 or more");
    within("straggle_probability", o.straggle_probability, 1, "from 0 to 1");
    within("failure_probability", o.failure_probability, 1, "from 0 to 1");
    for (const auto& outage : o.outages) {
      if (outage.worker < 0 || outage.worker >= o.workers)
        fail(Errc::usage, "an outage is of worker {}, but they count from 0 to {}", outage.worker, o.workers - 1);
      within("outage.at", outage.at, finite, "a finite number of 0 or more");
      within("outage.until", outage.until, finite, "a finite number of 0 or more (0: never)");
    }
  }

  static double normal(Rng rng) {  // Box and Muller: one draw is all that is needed
    const double u = uniform01(rng), v = uniform01(rng);
    return std::sqrt(-2 * std::log1p(-u)) * std::cos(6.283185307179586 * v);
  }

  void schedule_outages() {
    for (const auto& outage : options_.outages) {
      const bool for_good = outage.until <= outage.at;
      if (for_good || outage.until > now_) events_.push({outage.at, Kind::lost, outage.worker, for_good ? 1U : 0U});
      if (!for_good && outage.until >= now_) events_.push({outage.until, Kind::back, outage.worker, 0});
    }
  }

  void on(Launch& launch) {
    auto& run = runs_[launch.trial];
    const bool held = launch.parked && run.parked && run.launch.attempt == launch.attempt;
    if (held) {
      if (run.attempt) run.attempt->proceed(launch.allocation.lead);
      run.launch.allocation = std::move(launch.allocation);
    } else {
      run = {};
      run.launch = std::move(launch);
      run.steps = run.launch.next_step;
      run.saved = run.launch.restore.empty() ? 0 : run.launch.restore.front().steps;
    }
    run.parked = false;
    const auto under_way = std::exchange(run.launch.under_way, std::nullopt);
    run.at = under_way ? under_way->since : now_;
    const bool answered = !under_way || !under_way->reported;
    const int workers = run.launch.allocation.workers();
    if (workers == 1 && !run.group) {
      if (answered || under_way->forming) run.at += options_.startup_seconds;
      if (answered) schedule(run);
      return;
    }
    run.answered = answered;
    if (under_way && !answered && !under_way->forming) {
      run.group.emplace(run.launch.allocation.generation, workers);
      return;
    }
    run.group.emplace();
    run.resizing = under_way && under_way->forming;
    form(run, std::vector<int>(static_cast<std::size_t>(workers), -1));
  }
  void on(Resize& c) {
    Run* run = find(c.trial, c.attempt);
    if (run == nullptr || run->parked) return;
    if (!run->group) run->group.emplace(run->launch.allocation.generation, run->launch.allocation.workers());
    run->answered |= std::exchange(run->fence, 0) != 0;  // the step that was under way is done again
    run->launch.allocation = std::move(c.allocation);
    run->at = now_;
    run->resizing = true;
    form(*run, std::move(c.from));
  }
  void on(const GroupMessage&) {}  // its workers are of one mind
  // What is dismissed is gone at once; what is to join, or begins, stands ready after a while.
  void form(Run& run, std::vector<int> from) {
    group::Gone gone;
    std::vector<int> missing;
    for (const auto& action : run.group->resume(group::Form{run.launch.allocation.generation, std::move(from)})) {
      if (const auto* dismissed = std::get_if<group::Dismiss>(&action)) gone.members.push_back(dismissed->member);
      if (const auto* broken = std::get_if<group::Broken>(&action)) missing = broken->ranks;
    }
    run.group->resume(gone);
    run.forming = 0;
    if (!missing.empty()) return tell_lost(run, std::move(missing), lost_worker());  // they were lost meanwhile
    run.forming = ++fences_;
    events_.push({run.at + options_.startup_seconds, Kind::formed, run.launch.trial, run.forming});
  }
  void formed(Run& run) {
    run.forming = 0;
    GroupMachine& group = *run.group;
    for (int rank = 0; rank < group.size() && !group.running(); ++rank)
      group.resume(group::Joined{group.member(rank), group.generation()});
    const TrialId trial = run.launch.trial;
    const Attempt attempt = run.launch.attempt;
    const std::uint32_t generation = group.generation();
    if (run.attempt) run.attempt->context().move_to(run.launch.allocation.lead);
    if (std::exchange(run.answered, false)) schedule(run);
    if (std::exchange(run.resizing, false)) start_.sink(Resized{trial, attempt, generation});
  }
  // The attempt goes on where there is somebody left.
  void lose(TrialId trial, Attempt attempt, const std::vector<int>& ranks, Cause cause) {
    Run* run = find(trial, attempt);
    if (run == nullptr) return;
    if (!run->group) run->group.emplace(run->launch.allocation.generation, run->launch.allocation.workers());
    group::Gone gone;
    for (const int rank : ranks) gone.members.push_back(run->group->member(rank));
    for (const auto& action : run->group->resume(gone))
      if (const auto* broken = std::get_if<group::Broken>(&action)) {
        run->answered |= std::exchange(run->fence, 0) != 0;
        run->forming = 0;
        return tell_lost(*run, broken->ranks, std::move(cause));
      }
  }
  void tell_lost(const Run& run, std::vector<int> ranks, Cause cause) {
    const auto& [trial, attempt] = std::pair(run.launch.trial, run.launch.attempt);
    if (run.group->present() == 0) return fail_run(trial, attempt, std::move(cause));
    start_.sink(MemberLost{trial, attempt, run.group->generation(), std::move(ranks), std::move(cause)});
  }
  static Cause lost_worker() { return {.source = FailureSource::infrastructure, .text = "its worker was lost"}; }
  void on(const Continue& c) {
    if (auto* run = waiting(c.trial, c.attempt)) {
      if (c.save && !save(*run)) return;
      if (run->group && !run->group->running())
        run->answered = true;
      else
        schedule(*run);
    }
  }
  void on(const Pause& c) {
    if (auto* run = waiting(c.trial, c.attempt)) {
      if (c.save && !save(*run)) return;
      if (run->attempt) run->attempt->park();
      run->parked = true;
      run->forming = 0;
      start_.sink(Paused{c.trial, c.attempt, true});
    }
  }
  void on(const Stop& c) {
    if (auto* run = find(c.trial, c.attempt)) {
      const bool parked = run->parked;
      if (c.save && run->fence == 0 && !parked && !save(*run)) return;  // within a step nothing can be saved
      runs_.erase(c.trial);
      if (!parked) start_.sink(Stopped{c.trial, c.attempt});
    }
  }

  Run* find(TrialId trial, Attempt attempt) {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second.launch.attempt == attempt ? &found->second : nullptr;
  }

  Run* waiting(TrialId trial, Attempt attempt) {  // for an answer
    Run* run = find(trial, attempt);
    return run != nullptr && run->fence == 0 && !run->answered && !run->parked ? run : nullptr;
  }

  // When the step under way will end, and how.
  void schedule(Run& run) {
    const Launch& l = run.launch;
    Seconds duration = options_.step_seconds ? options_.step_seconds(l.params, run.steps) : 1.0;
    if (!(duration >= 0 && std::isfinite(duration)))
      fail(Errc::usage, "step_seconds gave {} for step {} of trial {}: it must be a finite number of 0 or more",
           duration, run.steps, l.trial);
    const int workers = l.allocation.workers();
    if (workers > 1) {
      const double speedup = options_.speedup ? options_.speedup(workers) : static_cast<double>(workers);
      if (!(speedup > 0 && std::isfinite(speedup)))
        fail(Errc::usage, "speedup gave {} for {} workers: it must be a finite number above 0", speedup, workers);
      duration /= speedup;
    }
    Seconds slowest = 0, first_failure = std::numeric_limits<double>::infinity();
    for (int rank = 0; rank < workers; ++rank) {
      Seconds own = duration * speeds_[static_cast<std::size_t>(l.allocation[rank].host)];
      if (options_.straggle_probability > 0 || options_.failure_probability > 0) {
        Rng rng = random_of(run, rank);
        if (uniform01(rng) < options_.straggle_probability) own *= options_.straggle_factor;
        if (uniform01(rng) < options_.failure_probability)
          if (const Seconds at = own * uniform01(rng); at < first_failure) {
            first_failure = at;
            run.failing = rank;
          }
      }
      slowest = std::max(slowest, own);
    }
    run.fence = ++fences_;
    if (first_failure < slowest || first_failure == 0)
      events_.push({run.at + first_failure, Kind::failure, l.trial, run.fence});
    else
      events_.push({run.at + slowest, Kind::step, l.trial, run.fence});
  }
  // Of one worker the same as ever. The workers of a new generation do not meet the fate of those before.
  Rng random_of(const Run& run, int rank) const {
    const Launch& l = run.launch;
    const auto trial = static_cast<std::uint64_t>(l.trial), step = static_cast<std::uint64_t>(run.steps);
    if (rank == 0 && l.allocation.generation == 0) return derived_rng(options_.seed, {2, trial, l.attempt, step});
    return derived_rng(options_.seed,
                       {3, trial, l.attempt, step, l.allocation.generation, static_cast<std::uint64_t>(rank)});
  }

  void deliver(const Due& due) {
    if (due.kind == Kind::lost || due.kind == Kind::back) {
      const int worker = static_cast<int>(due.trial);
      if (due.kind == Kind::back) return start_.sink(HostGained{worker});
      struct Victim {
        TrialId trial;
        Attempt attempt;
        std::uint32_t generation;
        std::vector<int> ranks;
      };
      std::vector<Victim> victims;
      for (auto it = runs_.begin(); it != runs_.end();) {
        const Launch& launch = it->second.launch;
        std::vector<int> ranks;
        for (int rank = 0; rank < launch.allocation.workers(); ++rank)
          if (launch.allocation[rank].host == worker) ranks.push_back(rank);
        const bool here = !ranks.empty(), parked = it->second.parked;
        if (here && !parked)
          victims.push_back({it->first, launch.attempt, launch.allocation.generation, std::move(ranks)});
        it = here && parked ? runs_.erase(it) : std::next(it);  // nobody waits to hear of these
      }
      std::sort(victims.begin(), victims.end(), [](const auto& a, const auto& b) { return a.trial < b.trial; });
      start_.sink(HostLost{worker, "scripted outage", due.fence != 0});
      for (const auto& [trial, attempt, generation, ranks] : victims) {
        const Run* run = find(trial, attempt);
        if (run == nullptr || run->launch.allocation.generation != generation) continue;  // it was told otherwise since
        if (run->launch.allocation.workers() == 1)
          fail_run(trial, attempt, lost_worker());
        else
          lose(trial, attempt, ranks, lost_worker());
      }
      return;
    }
    const auto found = runs_.find(due.trial);
    const auto fence = [&] { return due.kind == Kind::formed ? found->second.forming : found->second.fence; };
    if (found == runs_.end() || fence() != due.fence) return;  // it was stopped meanwhile
    Run& run = found->second;
    const Attempt attempt = run.launch.attempt;
    run.at = due.time;
    if (due.kind == Kind::formed) return formed(run);
    if (due.kind == Kind::failure) {
      Cause cause{.source = FailureSource::infrastructure, .text = "simulated failure"};
      return run.launch.allocation.workers() == 1 ? fail_run(due.trial, attempt, std::move(cause))
                                                  : lose(due.trial, attempt, {run.failing}, std::move(cause));
    }
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
    const int wanted = run.attempt->context().wanted_workers();
    start_.sink(Reported{due.trial, attempt, std::move(*done.report), std::move(done.made), 0, false, wanted});
  }

  // Where the worker was before the driver died: from the newest checkpoint, by the steps since.
  void begin(Run& run) {
    run.attempt.emplace(
        *store_, start_.directory, run.launch,
        [&](const CheckpointInfo& checkpoint, const std::string& why) {
          lost_.push_back({run.launch.trial, checkpoint, why});  // the sink might end the run
        },
        start_.log_limit);
    std::vector<AttemptRun> in_the_way;
    auto previous = kept_.take(run.launch.allocation.lead, in_the_way);
    in_the_way.clear();
    run.attempt->begin(*start_.program, previous ? &*previous : nullptr);
    const int from = run.attempt->steps();
    const int newest = run.launch.restore.empty() ? 0 : run.launch.restore.front().steps;
    const bool held = run.launch.next_step > newest;  // in memory, more than any checkpoint has
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

  SimulationOptions options_;
  std::vector<double> speeds_;
  ExecutorStart start_;
  std::optional<LocalCheckpointStore> store_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> events_;
  std::unordered_map<TrialId, Run> runs_;
  detail::KeptRuns kept_;
  std::vector<CheckpointLost> lost_;  // to be told
  Seconds now_ = 0;
  std::uint64_t fences_ = 0;
  bool notified_ = false;
};

HYPERTUNE_INLINE SimulatedExecutor::SimulatedExecutor(SimulationOptions options)
    : self_(std::make_unique<State>(std::move(options))) {}
HYPERTUNE_INLINE SimulatedExecutor::SimulatedExecutor(SimulatedExecutor&&) noexcept = default;
HYPERTUNE_INLINE SimulatedExecutor& SimulatedExecutor::operator=(SimulatedExecutor&&) noexcept = default;
HYPERTUNE_INLINE SimulatedExecutor::~SimulatedExecutor() = default;
HYPERTUNE_INLINE std::vector<Host> SimulatedExecutor::hosts() const { return self_->hosts(); }
HYPERTUNE_INLINE Seconds SimulatedExecutor::now() const { return self_->now(); }
HYPERTUNE_INLINE void SimulatedExecutor::restore_clock(Seconds now) { self_->restore_clock(now); }
HYPERTUNE_INLINE void SimulatedExecutor::start(ExecutorStart start) { self_->start(std::move(start)); }
HYPERTUNE_INLINE void SimulatedExecutor::perform(Command command) { self_->perform(std::move(command)); }
HYPERTUNE_INLINE void SimulatedExecutor::wait(Seconds deadline) { self_->wait(deadline); }
HYPERTUNE_INLINE void SimulatedExecutor::notify() { self_->notify(); }
HYPERTUNE_INLINE void SimulatedExecutor::shutdown() { self_->shutdown(); }

}  // namespace hypertune::inline v0
