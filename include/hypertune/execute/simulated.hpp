// SimulatedExecutor: thousands of workers in virtual time, deterministic to the bit.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/attempt_run.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/served_runs.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune {

/// A worker that is lost and, perhaps, comes back.
struct Outage {
  int worker = 0;
  Seconds at = 0;
  Seconds until = 0;  ///< 0: for good
};

/// How the simulated machines behave. Every draw is a function of the seed and of what it is for.
struct SimulationOptions {
  int workers = 4;
  Resources worker = {};  ///< what each worker has
  /// How long step number `step` (from 0) of a trial takes on a worker of speed 1, in virtual seconds.
  std::function<Seconds(const Params&, int step)> step_seconds = {};  ///< empty: 1 s
  Seconds startup_seconds = 0;      ///< before the first step of each attempt, and after a pause
  double speed_spread = 0;          ///< standard deviation of the logarithm of a worker's speed
  double straggle_probability = 0;  ///< of each step, to take …
  double straggle_factor = 10;      ///< … so many times as long
  double failure_probability = 0;   ///< of each step, to end in the attempt's failure instead
  std::vector<Outage> outages = {};
  std::uint64_t seed = 0;
};

/// Runs the program's steps in the caller's thread, one event after the other, each at its virtual time. Events at the
/// same time come in the order of outages, then trials.
///
/// The workers are taken to outlive the driver: an experiment that was killed and is resumed goes on at the virtual
/// time of its last record and makes the decisions that it would have made. A program without checkpoints is brought to
/// where it was by running its steps again (no report comes of them).
class SimulatedExecutor {
 public:
  static constexpr bool is_simulated = true;

  /// Error of kind `usage` that names the option that makes no sense.
  explicit SimulatedExecutor(SimulationOptions options) : options_(std::move(options)) {
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
  /// After start(): what the record says has happened by `now` is not done again, but what stands at that very moment
  /// and the outages that still last are told once more, as the record may end in the middle of them.
  void restore_clock(Seconds now) {
    now_ = std::max(now_, now);
    events_ = {};
    schedule_outages();
  }
  std::string name() const { return "simulated"; }

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
    served_.clear();
    events_ = {};
    notified_ = true;
  }

 private:
  enum class Kind : std::uint8_t { lost, back, step, failure };
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
      if (run.attempt) run.attempt->go_on(launch.allocation.lead);
      run.launch.allocation.lead = std::move(launch.allocation.lead);
    } else {
      run = {};
      run.launch = std::move(launch);
      run.steps = run.launch.next_step;
      run.saved = run.launch.restore.empty() ? 0 : run.launch.restore.front().steps;
    }
    run.parked = false;
    run.at = run.launch.since.value_or(now_);
    if (run.launch.reported) return;  // the answer follows
    run.at += options_.startup_seconds;
    schedule(run);
  }
  void on(const Continue& c) {
    if (auto* run = waiting(c.trial, c.attempt)) {
      if (c.save && !save(*run)) return;
      schedule(*run);
    }
  }
  void on(const Pause& c) {
    if (auto* run = waiting(c.trial, c.attempt)) {
      if (c.save && !save(*run)) return;
      if (run->attempt) run->attempt->park();
      run->parked = true;
      run->launch.since.reset();
      run->launch.reported = false;
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
    return run != nullptr && run->fence == 0 && !run->parked ? run : nullptr;
  }

  // When the step under way will end, and how.
  void schedule(Run& run) {
    const Launch& l = run.launch;
    Seconds duration = options_.step_seconds ? options_.step_seconds(l.params, run.steps) : 1.0;
    if (!(duration >= 0 && std::isfinite(duration)))
      fail(Errc::usage, "step_seconds gave {} for step {} of trial {}: it must be a finite number of 0 or more",
           duration, run.steps, l.trial);
    duration *= speeds_[static_cast<std::size_t>(l.allocation.lead.host)];
    Kind kind = Kind::step;
    if (options_.straggle_probability > 0 || options_.failure_probability > 0) {
      Rng rng = derived_rng(options_.seed,
                            {2, static_cast<std::uint64_t>(l.trial), l.attempt, static_cast<std::uint64_t>(run.steps)});
      if (uniform01(rng) < options_.straggle_probability) duration *= options_.straggle_factor;
      if (uniform01(rng) < options_.failure_probability) {
        kind = Kind::failure;
        duration *= uniform01(rng);
      }
    }
    run.fence = ++fences_;
    events_.push({run.at + duration, kind, l.trial, run.fence});
  }

  void deliver(const Due& due) {
    if (due.kind == Kind::lost || due.kind == Kind::back) {
      const int worker = static_cast<int>(due.trial);
      if (due.kind == Kind::back) return start_.sink(HostGained{worker});
      std::vector<std::pair<TrialId, Attempt>> victims;
      for (auto it = runs_.begin(); it != runs_.end();) {
        const Run& run = it->second;
        const bool here = run.launch.allocation.lead.host == worker;
        if (here && !run.parked) victims.emplace_back(it->first, run.launch.attempt);
        it = here && run.parked ? runs_.erase(it) : std::next(it);  // nobody waits to hear of these
      }
      std::sort(victims.begin(), victims.end());
      start_.sink(HostLost{worker, "scripted outage", due.fence != 0});
      for (const auto& [trial, attempt] : victims)
        fail_run(trial, attempt, Cause{.blame = Blame::infrastructure, .text = "its worker was lost"});
      return;
    }
    const auto found = runs_.find(due.trial);
    if (found == runs_.end() || found->second.fence != due.fence) return;  // it was stopped meanwhile
    Run& run = found->second;
    const Attempt attempt = run.launch.attempt;
    run.at = due.time;
    if (due.kind == Kind::failure)
      return fail_run(due.trial, attempt, Cause{.blame = Blame::infrastructure, .text = "simulated failure"});
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
    start_.sink(Reported{due.trial, attempt, std::move(*done.report), std::move(done.made)});
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
    auto served = served_.take(run.launch.allocation.lead, in_the_way);
    in_the_way.clear();
    run.attempt->begin(*start_.program, served ? &*served : nullptr);
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
      CheckpointInfo sealed = store_->seal(std::move(*writer));
      run.saved = run.steps;
      say_lost();
      start_.sink(Checkpointed{trial, attempt, std::move(sealed)});
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
    if (node && node.mapped().attempt && start_.program->keeps()) served_.keep(std::move(*node.mapped().attempt));
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
  detail::ServedRuns served_;
  std::vector<CheckpointLost> lost_;  // to be told
  Seconds now_ = 0;
  std::uint64_t fences_ = 0;
  bool notified_ = false;
};

inline SimulatedExecutor simulated(SimulationOptions options = {}) { return SimulatedExecutor(std::move(options)); }

}  // namespace hypertune
