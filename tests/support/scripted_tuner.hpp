// ScriptedTuner: stands where the Tuner stands, and notes each law of executor.hpp that an executor breaks.
#pragma once

#include "scripted_trial.hpp"
#include "temporary_directory.hpp"
#include "test.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

class ScriptedTuner {
 public:
  using Phase = ScriptedTrial::Phase;
  /// Where answers come from: within the sink's call, from the thread that waits, or now here and now there.
  enum class Answers { within, elsewhere, mixed };

  ScriptedTuner(AnyExecutor executor, std::shared_ptr<const Program> program, Answers answers = Answers::within,
                std::uint64_t seed = 1)
      : answers_(answers),
        rng_(derived_rng(seed, {7})),
        store_(directory_.path()),
        placement_(executor.hosts()),
        executor_(std::move(executor)) {
    executor_.start({.program = std::move(program), .directory = directory_.path(), .sink = [this](Event event) {
                       post(std::move(event));
                     }});
  }
  ScriptedTuner(const ScriptedTuner&) = delete;
  ScriptedTuner& operator=(const ScriptedTuner&) = delete;
  ~ScriptedTuner() { shutdown(); }

  // ---- To be set before run(). All are called on whatever thread the event comes. ----
  std::function<Answer(const ScriptedTrial&)> decide = [](const ScriptedTrial&) { return Answer{}; };
  std::function<void(ScriptedTrial&)> before_launch = [](ScriptedTrial&) {};
  /// Once it is set: the checkpoints of trials after the first, which begin with the last one.
  std::vector<CheckpointInfo> inherited;
  int attempts = 1;           ///< of each trial that fails
  Workers workers = {};       ///< of each trial
  bool unreliable = false;    ///< attempts may fail of the executor's own doing
  double stray_stops = 0;     ///< probability, at each event, that some trial is stopped at once
  bool resume_paused = true;  ///< at once when there is room; else never
  double patience = 60;       ///< seconds of real time without an event after which run() gives up

  TrialId add(Plan plan) {
    const auto id = static_cast<TrialId>(trials_.size());
    ScriptedTrial trial;
    trial.id = id;
    trial.plan = plan;
    trials_.push_back(std::move(trial));
    pending_.push_back(id);
    return id;
  }
  /// Until every trial is over, or `until` says so. Fails the test when a law was broken.
  void run(const std::function<bool()>& until = {}) {
    watched_ = static_cast<bool>(until);
    strand([&] {
      launch_pending();
      perform_all(commands_);
    });
    auto seen = events_.load();
    auto end = deadline();
    for (bool over = false; !over;) {
      strand([&] {
        perform_all(deferred_);
        over = until ? until() : over_ == trials_.size();
      });
      if (over) break;
      if (events_.load() != seen) {
        seen = events_.load();
        end = deadline();
      }
      if (std::chrono::steady_clock::now() > end) {
        complain(fmt::format("nothing happened for {} s: {}", patience, unfinished()));
        break;
      }
      executor_.wait(executor_.now() + 1);
    }
    check();
  }
  /// Looks at trials while some of them go on.
  void look(const std::function<void()>& at) { strand(at); }
  /// Like a user's Stop from any thread.
  void stop(TrialId id, bool save = false) {
    strand([&] {
      ask_to_stop(trials_.at(static_cast<std::size_t>(id)), save);
      perform_all(commands_);
    });
  }
  /// A command as it is, past what the tuner knows (late ones, wrong ones).
  void command(Command raw) {
    strand([&] { executor_.perform(std::move(raw)); });
  }
  void shutdown() {
    if (std::exchange(shut_, true)) return;
    executor_.shutdown();
    closed_ = true;
    executor_.shutdown();  // a second one has nothing to do
  }
  /// Fails the test when a law was broken.
  void check() {
    const std::lock_guard guard(complaints_mutex_);
    std::string text;
    for (std::size_t i = 0; i < complaints_.size() && i < 10; ++i) text += complaints_[i] + "\n";
    INFO(text);
    REQUIRE(complaints_.empty());
  }

  std::vector<SaveFailed> save_failures() {
    const std::lock_guard guard(complaints_mutex_);
    return save_failures_;
  }
  /// What the executor has told the user, so far.
  std::vector<std::string> notices() {
    const std::lock_guard guard(complaints_mutex_);
    return notices_;
  }

  const ScriptedTrial& operator[](TrialId id) const { return trials_.at(static_cast<std::size_t>(id)); }
  std::size_t size() const { return trials_.size(); }
  std::uint64_t events() const { return events_.load(); }
  const std::filesystem::path& directory() const { return directory_.path(); }
  LocalCheckpointStore& store() { return store_; }
  AnyExecutor& executor() { return executor_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience));
  }

  // ---- The strand, as the Tuner has it ----
  template <class F>
  void strand(const F& work) {
    const std::lock_guard guard(mutex_);
    holder_ = std::this_thread::get_id();
    work();
    drain();
    holder_ = std::thread::id();
  }
  void post(Event event) {
    if (closed_) return complain(fmt::format("event {} came after shutdown()", event.index()));
    if (holder_.load() == std::this_thread::get_id()) {  // raised by a command that this thread gives
      inbox_.push_back(std::move(event));
      return;
    }
    strand([&] { inbox_.push_back(std::move(event)); });
  }
  void drain() {
    while (!inbox_.empty()) {
      const Event event = std::move(inbox_.front());
      inbox_.pop_front();
      ++events_;
      std::visit([this](const auto& e) { on(e); }, event);
      if (stray_stops > 0 && uniform01(rng_) < stray_stops) stop_any();
      launch_pending();
      // Never past what waits to be performed: a Stop would come before the Launch that it is for.
      const bool here =
          answers_ == Answers::within || (answers_ == Answers::mixed && uniform01(rng_) < 0.5 && deferred_.empty());
      if (here) {
        perform_all(commands_);
      } else {
        std::move(commands_.begin(), commands_.end(), std::back_inserter(deferred_));
        commands_.clear();
        executor_.notify();
      }
      if (watched_ || over_ == trials_.size()) executor_.notify();  // run() looks again
    }
  }
  void perform_all(std::deque<Command>& list) {
    while (!list.empty()) {
      Command next = std::move(list.front());
      list.pop_front();
      executor_.perform(std::move(next));
    }
  }

  // ---- Commands ----
  void launch_pending() {
    for (std::size_t left = pending_.size(); left > 0; --left) {
      auto& trial = trials_[static_cast<std::size_t>(pending_.front())];
      // A parked run of several workers is held by as many as it had.
      const bool held = trial.phase == Phase::paused && trial.parked && workers.several();
      const Workers wanted = held ? Workers{trial.parked_workers} : workers;
      auto slots = wanted.several() ? placement_.place_all({}, wanted) : std::vector<Slot>{};
      if (!wanted.several())
        if (auto slot = placement_.place({})) slots.push_back(std::move(*slot));
      if (slots.empty()) return;
      pending_.pop_front();
      Allocation allocation{.lead = slots.front(), .others = {slots.begin() + 1, slots.end()}};
      if (trial.phase != Phase::pending && trial.phase != Phase::paused) {  // it was stopped meanwhile
        trial.allocation = std::move(allocation);
        free_slot(trial);
        continue;
      }
      launch(trial, std::move(allocation));
    }
  }
  void launch(ScriptedTrial& trial, Allocation allocation) {
    before_launch(trial);
    if (trial.id > 0 && !inherited.empty()) trial.sealed = inherited;
    Launch go;
    go.trial = trial.id;
    go.parked = trial.phase == Phase::paused && trial.parked;
    if (!go.parked && !trial.starts.empty()) ++trial.attempt;
    go.attempt = trial.attempt;
    go.point = trial.plan.point();
    go.params = Params{{"seed", std::int64_t{trial.plan.seed}}};
    if (!go.parked) go.restore = trial.sealed;
    allocation.generation = go.parked ? trial.generation : 0;
    trial.generation = allocation.generation;
    go.allocation = allocation;
    go.group = workers.several();
    go.next_step = go.parked ? trial.steps : go.restore.empty() ? 0 : go.restore.front().steps;
    trial.allocation = std::move(allocation);
    trial.phase = go.parked ? Phase::running : Phase::launched;
    trial.parked = trial.again = false;
    trial.story += go.parked ? 'l' : 'L';
    commands_.emplace_back(std::move(go));
  }
  void ask_to_stop(ScriptedTrial& trial, bool save) {
    switch (trial.phase) {
      case Phase::over:
      case Phase::stopping: return;
      case Phase::pending: return finish(trial);
      case Phase::paused:
        if (trial.parked) commands_.emplace_back(Stop{trial.id, trial.attempt, false});
        return finish(trial);
      default:
        trial.save_asked = save && trial.phase == Phase::waiting;
        trial.phase = Phase::stopping;
        trial.story += 'x';
        commands_.emplace_back(Stop{trial.id, trial.attempt, save});
    }
  }
  void stop_any() {
    auto& trial = trials_[static_cast<std::size_t>(uniform01(rng_) * static_cast<double>(trials_.size()))];
    if (trial.phase != Phase::pending) ask_to_stop(trial, uniform01(rng_) < 0.5);
  }

  // ---- Events ----
  ScriptedTrial* current(TrialId id, Attempt attempt, const char* what) {
    if (id < 0 || id >= static_cast<TrialId>(trials_.size())) {
      complain(fmt::format("{} of trial {}, which there is not", what, id));
      return nullptr;
    }
    auto& trial = trials_[static_cast<std::size_t>(id)];
    trial.story += what[0];
    if (trial.attempt != attempt || trial.phase == Phase::over || trial.phase == Phase::pending ||
        trial.phase == Phase::paused) {
      broken(trial, fmt::format("{} of attempt {}, which is not under way", what, attempt));
      return nullptr;
    }
    return &trial;
  }
  void on(const Started& e) {
    auto* trial = current(e.trial, e.attempt, "Started");
    if (trial == nullptr) return;
    if (trial->phase != Phase::launched && trial->phase != Phase::stopping) broken(*trial, "Started twice");
    if (trial->phase == Phase::launched) trial->phase = Phase::running;
    const int expected = trial->sealed.empty() ? 0 : trial->sealed.front().steps;
    if (e.next_step != expected) broken(*trial, fmt::format("goes on from step {}, not {}", e.next_step, expected));
    trial->steps = e.next_step;
    trial->starts.push_back(e.next_step);
  }
  void on(const Reported& e) {
    auto* trial = current(e.trial, e.attempt, "Reported");
    if (trial == nullptr) return;
    if (trial->phase != Phase::running && trial->phase != Phase::stopping)
      broken(*trial, "reported before it started, or before its last report was answered");
    trial->steps = e.report.step.value_or(trial->steps) + 1;
    const double* state = find_metric(e.report.metrics, "state");
    const auto expected = static_cast<double>(expected_state(trial->plan, trial->steps));
    if (state == nullptr || *state != expected) broken(*trial, "its state is not that of its steps done in turn");
    trial->reports.push_back(e.report);
    if (trial->phase == Phase::stopping) return;  // a Stop is under way: that is the answer
    trial->phase = Phase::waiting;
    const Answer answer = decide(*trial);
    trial->again = answer.again;
    trial->save_asked = answer.save && trial->plan.savable;
    switch (answer.kind) {
      case Answer::Kind::proceed:
        trial->phase = Phase::running;
        if (answer.workers > 0) resize(*trial, answer.workers);
        if (trial->save_asked) trial->promised.push_back(trial->steps);
        commands_.emplace_back(Continue{e.trial, e.attempt, answer.save});
        break;
      case Answer::Kind::pause:
        trial->phase = Phase::pausing;
        commands_.emplace_back(Pause{e.trial, e.attempt, answer.save});
        break;
      case Answer::Kind::stop:
        trial->phase = Phase::stopping;
        commands_.emplace_back(Stop{e.trial, e.attempt, answer.save});
    }
  }
  void on(const Checkpointed& e) {
    auto* trial = current(e.trial, e.attempt, "Checkpointed");
    if (trial == nullptr) return;
    if (!trial->plan.savable) broken(*trial, "a checkpoint of a trial that cannot save");
    if (e.checkpoint.trial != e.trial || e.checkpoint.steps < 1 || e.checkpoint.steps > trial->steps)
      broken(*trial, fmt::format("a checkpoint of {} steps, but {} are done", e.checkpoint.steps, trial->steps));
    trial->sealed.insert(trial->sealed.begin(), e.checkpoint);
  }
  void on(const CheckpointLost& e) {
    auto& trial = trials_.at(static_cast<std::size_t>(e.trial));
    trial.story += 'c';
    const auto found = std::find(trial.sealed.begin(), trial.sealed.end(), e.checkpoint);
    if (found == trial.sealed.end()) return broken(trial, "lost a checkpoint that it was not offered");
    if (e.why.empty()) broken(trial, "a checkpoint is lost and nobody says why");
    trial.lost.push_back(e.checkpoint);
    trial.sealed.erase(found);
  }
  void on(const Paused& e) {
    auto* trial = current(e.trial, e.attempt, "Paused");
    if (trial == nullptr) return;
    if (trial->phase != Phase::pausing && trial->phase != Phase::stopping) broken(*trial, "paused though not asked to");
    require_saved(*trial, trial->plan.savable && (!e.parked || (trial->save_asked && trial->phase == Phase::pausing)));
    require_promised(*trial);
    ++trial->pauses;
    trial->parked_workers = trial->allocation ? trial->allocation->workers() : 1;
    const bool stopping = trial->phase == Phase::stopping;
    free_slot(*trial);
    trial->parked = e.parked;
    trial->phase = Phase::paused;
    if (stopping) {  // the Stop crossed it; now it drops the parked run
      return finish(*trial);
    }
    if (resume_paused) pending_.push_back(trial->id);
  }
  void on(const Finished& e) {
    auto* trial = current(e.trial, e.attempt, "Finished");
    if (trial == nullptr) return;
    if (trial->phase != Phase::running && trial->phase != Phase::stopping) broken(*trial, "finished out of turn");
    if (trial->phase == Phase::running && trial->steps < trial->plan.steps)
      broken(*trial, fmt::format("finished after {} steps of {}", trial->steps, trial->plan.steps));
    require_promised(*trial);
    ++trial->finished;
    finish(*trial);
  }
  void on(const Stopped& e) {
    auto* trial = current(e.trial, e.attempt, "Stopped");
    if (trial == nullptr) return;
    if (trial->phase != Phase::stopping) broken(*trial, "stopped though not asked to");
    trial->promised.clear();  // a Stop may overtake a save
    require_saved(*trial, trial->save_asked);
    ++trial->stopped;
    if (!trial->again) return finish(*trial);
    retry(*trial);
  }
  void on(const Failed& e) {
    auto* trial = current(e.trial, e.attempt, "Failed");
    if (trial == nullptr) return;
    if (e.cause.text.empty() || e.cause.text.find('\n') != std::string::npos)
      broken(*trial, fmt::format("its failure's cause is not one line: '{}'", e.cause.text));
    if (e.cause.source != FailureSource::user) trial->promised.clear();  // what was on its way is lost with the host
    const bool own = !unreliable || e.cause.source == FailureSource::user;
    if (own && trial->plan.ordinary() && trial->plan.save_throws_at == Plan::never)
      broken(*trial, "failed: " + e.cause.text);
    require_promised(*trial);
    trial->causes.push_back(e.cause);
    const bool stopping = trial->phase == Phase::stopping && !trial->again;
    if (stopping || static_cast<int>(trial->causes.size()) >= attempts) return finish(*trial);
    retry(*trial);
  }
  void on(const MemberLost& e) {
    auto* trial = current(e.trial, e.attempt, "MemberLost");
    if (trial == nullptr || trial->phase == Phase::stopping || trial->phase == Phase::pausing) return;
    if (e.generation > trial->generation) broken(*trial, "lost a worker of a generation that there was not");
    if (e.generation != trial->generation) return;  // the Resize crossed it: the executor tells again
    const int had = trial->allocation->workers();
    const auto in = [](const std::vector<int>& ranks, int rank) {
      return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    };
    // What the program itself throws in a new worker ends only that.
    const bool own = std::all_of(e.ranks.begin(), e.ranks.end(), [&](int rank) { return in(e.newcomers, rank); }) &&
                     !trial->plan.ordinary();
    if (!unreliable && !own) broken(*trial, "lost a worker: " + e.cause.text);
    std::vector<int> left, starting;
    for (int rank = 0; rank < had; ++rank)
      if (!in(e.ranks, rank)) (in(e.newcomers, rank) ? starting : left).push_back(rank);
    // The others do not wait for those that begin, if they are enough.
    const bool enough = !left.empty() && static_cast<int>(left.size()) >= workers.min;
    for (const int rank : starting)
      if (enough)
        trial->leaving.push_back((*trial->allocation)[rank]);
      else
        left.insert(std::upper_bound(left.begin(), left.end(), rank), rank);
    if (left.empty() || (e.ranks.empty() && e.newcomers.empty()))
      return broken(*trial, "lost all its workers, or none");
    if (e.ranks.empty() && !enough) return;
    if (e.cause.text.empty()) broken(*trial, "lost a worker and nobody says why");
    ++trial->losses;
    trial->promised.clear();  // rank 0 may be among them, or follow
    trial->save_asked = false;
    Allocation rest{.lead = (*trial->allocation)[left.front()]};
    for (std::size_t i = 1; i < left.size(); ++i) rest.others.push_back((*trial->allocation)[left[i]]);
    for (const int rank : e.ranks) placement_.release((*trial->allocation)[rank]);
    rest.generation = trial->generation;
    trial->allocation = std::move(rest);
    const int missing = workers.min - static_cast<int>(left.size());
    auto fresh = placement_.place_all({}, {.min = std::max(1, missing), .max = had - static_cast<int>(left.size())});
    if (missing > static_cast<int>(fresh.size())) {
      trial->phase = Phase::stopping;
      trial->again = true;
      commands_.emplace_back(Stop{e.trial, e.attempt, false});
      return;
    }
    form(*trial, std::move(left), std::move(fresh));
  }
  void on(const Resized& e) {
    auto* trial = current(e.trial, e.attempt, "Zized");
    if (trial == nullptr) return;
    if (e.generation > trial->generation || !trial->resizing) broken(*trial, "resized though not asked to, or twice");
    if (e.generation != trial->generation) return;
    trial->resizing = false;
    ++trial->resizes;
    for (const Slot& slot : std::exchange(trial->leaving, {})) placement_.release(slot);
  }
  void resize(ScriptedTrial& trial, int wanted) {
    const int have = trial.allocation->workers();
    std::vector<int> left;
    for (int rank = 0; rank < have; ++rank)
      if (rank < wanted)
        left.push_back(rank);
      else
        trial.leaving.push_back((*trial.allocation)[rank]);
    std::vector<Slot> fresh;
    if (wanted > have) fresh = placement_.place_all({}, {.min = 1, .max = wanted - have});
    Allocation rest{.generation = trial.generation, .lead = trial.allocation->lead};
    for (std::size_t i = 1; i < left.size(); ++i) rest.others.push_back((*trial.allocation)[left[i]]);
    trial.allocation = std::move(rest);
    if (wanted < have || !fresh.empty()) form(trial, std::move(left), std::move(fresh));
  }
  // Those of `ranks` are in trial.allocation, in this order.
  void form(ScriptedTrial& trial, std::vector<int> ranks, std::vector<Slot> fresh) {
    trial.allocation->generation = ++trial.generation;
    ranks.resize(ranks.size() + fresh.size(), -1);
    std::move(fresh.begin(), fresh.end(), std::back_inserter(trial.allocation->others));
    trial.resizing = true;
    trial.story += 'z';
    commands_.emplace_back(Resize{trial.id, trial.attempt, *trial.allocation, std::move(ranks)});
  }
  void on(const SaveFailed& e) {
    const std::lock_guard guard(complaints_mutex_);
    save_failures_.push_back(e);
  }
  void on(const GroupMessage&) { complain("a message of a group came up to the Tuner"); }
  void on(const Notice& e) {
    const std::lock_guard guard(complaints_mutex_);
    notices_.push_back(e.text);
  }
  void on(const HostGained& e) {
    if (e.what && static_cast<std::size_t>(e.host) == placement_.size()) {
      placement_.add_host(*e.what);
      return;
    }
    if (e.what) placement_.describe_host(e.host, e.what->total);  // perhaps it was not there at the start
    placement_.restore_host(e.host);
  }
  void on(const HostLost& e) { placement_.remove_host(e.host); }

  void require_saved(ScriptedTrial& trial, bool asked) {
    if (asked && trial.steps > trial.starts.back() && trial.plan.save_throws_at == Plan::never &&
        (trial.sealed.empty() || trial.sealed.front().steps != trial.steps))
      broken(trial, "left its slot without the checkpoint that was asked for");
  }
  void require_promised(ScriptedTrial& trial) {
    for (const int steps : trial.promised) {
      const bool kept =
          std::any_of(trial.sealed.begin(), trial.sealed.end(), [&](const auto& c) { return c.steps == steps; });
      if (!kept && trial.phase != Phase::stopping && trial.plan.save_throws_at != steps)
        broken(trial, fmt::format("ended without the checkpoint of {} steps that was asked for", steps));
    }
    trial.promised.clear();
  }
  void free_slot(ScriptedTrial& trial) {
    if (trial.allocation)
      for (int rank = 0; rank < trial.allocation->workers(); ++rank) placement_.release((*trial.allocation)[rank]);
    trial.allocation.reset();
    for (const Slot& slot : std::exchange(trial.leaving, {})) placement_.release(slot);
    trial.resizing = false;
  }
  void finish(ScriptedTrial& trial) {
    free_slot(trial);
    trial.phase = Phase::over;
    ++over_;
  }
  void retry(ScriptedTrial& trial) {
    free_slot(trial);
    if (trial.starts.empty()) trial.starts.push_back(0);  // it failed before it started; the next attempt is another
    trial.phase = Phase::pending;
    pending_.push_back(trial.id);
  }

  void complain(std::string text) {
    const std::lock_guard guard(complaints_mutex_);
    complaints_.push_back(std::move(text));
  }
  void broken(const ScriptedTrial& trial, const std::string& what) {
    complain(fmt::format("trial {} attempt {} after {} steps ({}): {}", trial.id, trial.attempt, trial.steps,
                         trial.story.substr(trial.story.size() - std::min<std::size_t>(trial.story.size(), 30)), what));
  }
  std::string unfinished() const {
    std::string text;
    for (const auto& trial : trials_)
      if (trial.phase != Phase::over && text.size() < 400)
        text += fmt::format("trial {} phase {} ({}); ", trial.id, static_cast<int>(trial.phase),
                            trial.story.substr(trial.story.size() - std::min<std::size_t>(trial.story.size(), 20)));
    return text;
  }

  TemporaryDirectory directory_;
  Answers answers_;
  Rng rng_;
  LocalCheckpointStore store_;
  Placement placement_;

  std::mutex mutex_;
  std::atomic<std::thread::id> holder_{};
  std::deque<Event> inbox_;
  std::deque<Command> commands_, deferred_;
  std::deque<ScriptedTrial> trials_;
  std::deque<TrialId> pending_;
  std::size_t over_ = 0;
  std::atomic<std::uint64_t> events_{0};
  std::atomic<bool> closed_{false}, watched_{false};
  bool shut_ = false;

  std::mutex complaints_mutex_;
  std::vector<std::string> complaints_, notices_;
  std::vector<SaveFailed> save_failures_;
  AnyExecutor executor_;  // last: it ends before what its events go to
};

}  // namespace hypertune::inline v0::test
