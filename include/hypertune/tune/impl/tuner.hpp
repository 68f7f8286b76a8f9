// The Tuner: processes events and sends commands.
#pragma once

#include <hypertune/process/standard_descriptors.hpp>
#include <hypertune/tune/detail/experiment.hpp>
#include <hypertune/tune/detail/fresh_folder.hpp>
#include <hypertune/tune/detail/ordered/ordered_gate.hpp>
#include <hypertune/tune/detail/requests/control.hpp>
#include <hypertune/tune/detail/requests/request_queue.hpp>
#include <hypertune/tune/detail/resumption.hpp>
#include <hypertune/tune/detail/runtime_hooks.hpp>
#include <hypertune/tune/interrupt.hpp>
#include <hypertune/tune/tuner.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// The executor's events enter the strand (a mutex) on the thread that delivers them. The Controller decides, the
/// records go to the Journal, and the commands go back to the executor before the event's call returns. So a worker
/// that reports usually gets its answer without waiting for another thread.
class Tuner::State {
 public:
  State(SearchSpace space, std::shared_ptr<const Program> program, Options options)
      : options_(std::move(options)), program_(std::move(program)), space_(std::move(space)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// An experiment runs once: the first who claims it runs it, all others get an Error of kind `usage`.
  void claim() {
    if (started_.exchange(true)) fail(Errc::usage, "an experiment runs once: make another Tuner for the next run");
  }
  Results run();
  Results run_in(const detail::FreshFolder& folder);
  std::thread thread;  // started by start()

  void stop() {
    interrupts_.request(1);
    wake();
  }
  void stop_now() {
    interrupts_.request(2);
    wake();
  }

  const std::filesystem::path& directory() const { return directory_; }
  std::string why_pending(TrialId trial) {
    const std::lock_guard guard(strand_);
    if (!experiment_ || !experiment_->controller().state().trials().contains(trial)) return "there is no such trial";
    return experiment_->controller().why_pending(trial);
  }

 private:
  template <class Decide>
  void on_strand(Decide&& decide);
  void post(Event event);
  void process(Event event);
  void process_due_events(Seconds now);
  void carry_out(Outcome& out, Seconds now);
  void handle_timeouts(Seconds now);
  Seconds next_wake(Seconds now);
  Workload workload() const;
  ExecutorFacts executor_facts() const;
  ExecutorStart executor_start();
  detail::FreshFolder claim_folder();
  std::shared_ptr<void> open_experiment(const ExecutorFacts& facts, const detail::FreshFolder& folder);
  void drive();
  [[noreturn]] void fail_run(const detail::FreshFolder& folder);
  // The time to put into records. Never earlier than the last recorded time, even if the machine's clock was set back.
  Seconds now() const { return options_.executor.now() + ahead_; }
  void wake() {
    if (!running_.load(std::memory_order_acquire)) return;
    options_.executor.notify();
    requests_.wake();
  }
  ControlAnswer control(const ControlRequest& request);
  ControlAnswer carry_out(const ControlRequest& request);
  void answer_requests() {
    requests_.serve([this](const ControlRequest& request) { return carry_out(request); });
  }
  void wait_while_paused();
  bool is_paused() {
    const std::lock_guard guard(strand_);
    return experiment_->controller().is_paused();
  }
  void start_searcher_thread();
  void stop_searcher_thread();

  Options options_;
  std::shared_ptr<const Program> program_;
  SearchSpace space_;
  std::filesystem::path directory_;

  // The strand. What it guards is only used by the thread that holds it.
  std::mutex strand_;
  std::atomic<std::thread::id> holder_{};
  std::deque<Event> inbox_;  // events raised by a command on the thread that holds the strand, or before begun_
  bool begun_ = false;
  Outcome out_;
  std::optional<OrderedGate> gate_;
  std::exception_ptr error_;
  std::atomic<bool> started_{false}, over_{false}, running_{false};

  detail::RequestQueue requests_;  // from another terminal; also what run() waits on while the experiment is paused
  std::atomic<bool> waits_while_paused_{false};

  std::thread searcher_thread_;  // computes suggestions, unless they are cheap or the run is ordered

  Interrupts interrupts_;
  Seconds ahead_ = 0;  // added to the executor's clock; set once, before the first decision
  std::optional<Seconds> interrupted_at_;
  bool hurried_ = false;
  std::optional<Seconds> leave_by_;  // when to abandon trials; set once the user wants to leave now
  bool left_behind_ = false;         // trials were abandoned at leave_by_
  static constexpr Seconds leave_time = 1;

  std::unique_ptr<Experiment> experiment_;  // guarded by strand_. Last: its Journal's thread uses members above
};

// Calls `decide`, then processes the events that it raised. Does nothing once the experiment is over.
template <class Decide>
void Tuner::State::on_strand(Decide&& decide) {
  const std::lock_guard guard(strand_);
  if (over_.load(std::memory_order_relaxed)) return;
  holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  bool over = false;
  try {
    decide();
    while (begun_ && !inbox_.empty()) {
      Event next = std::move(inbox_.front());
      inbox_.pop_front();
      if (!experiment_->controller().finished()) process(std::move(next));
    }
    over = begun_ && experiment_->controller().finished();
  } catch (...) {
    inbox_.clear();
    error_ = std::current_exception();
    over = true;
  }
  holder_.store(std::thread::id(), std::memory_order_relaxed);
  if (!over) return;
  over_.store(true, std::memory_order_release);
  options_.executor.notify();
  requests_.wake();
}

void Tuner::State::post(Event event) {
  if (holder_.load(std::memory_order_relaxed) == std::this_thread::get_id())
    inbox_.push_back(std::move(event));
  else
    on_strand([&] {
      if (begun_)
        process(std::move(event));
      else
        inbox_.push_back(std::move(event));
    });
}

void Tuner::State::process(Event event) {
  const Seconds now = this->now();
  if (interrupts_.level() > 0) experiment_->controller().interrupt();  // before the next decision, not after it
  if (!gate_) {
    experiment_->controller().handle(std::move(event), now, out_);
    carry_out(out_, now);
  } else {
    gate_->offer(std::move(event));
    process_due_events(now);
  }
}

// Processes all events whose turn it is.
void Tuner::State::process_due_events(Seconds now) {
  while (auto next = gate_->next()) {
    experiment_->controller().handle(std::move(*next), now, out_);
    carry_out(out_, now);
  }
}

// `now` is the time at which the decisions were made; a replay must use the same time.
void Tuner::State::carry_out(Outcome& out, Seconds now) {
  if (options_.executor.elastic())
    for (const auto& what : out.records)
      if (const auto* ended = std::get_if<record::TrialEnded>(&what)) options_.executor.trial_ended(ended->trial);
  const auto& controller = experiment_->controller();
  std::vector<TrialId> ended;  // trials whose attempt has ended
  if (gate_)
    for (const auto& what : out.records) {
      if (const auto* paused = std::get_if<record::TrialPaused>(&what)) gate_->paused(paused->trial);
      if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) ended.push_back(failed->trial);
      if (const auto* over = std::get_if<record::TrialEnded>(&what)) ended.push_back(over->trial);
    }
  experiment_->write(out, now);
  // A command may raise events at once. These wait in the inbox and do not change this list.
  for (auto& command : out.commands) {
    if (gate_) {
      if (const auto* go = std::get_if<Launch>(&command))
        gate_->launched(go->trial, go->next_step, controller.state().trials()[go->trial].steps);
      if (const auto* pause = std::get_if<Pause>(&command)) gate_->ending(pause->trial, false);
      if (const auto* stop = std::get_if<Stop>(&command)) gate_->ending(stop->trial);
    }
    options_.executor.perform(std::move(command));
  }
  if (std::exchange(out.tick_earlier, false)) wake();
  if (!out.commands.empty() && waits_while_paused_) requests_.wake();
  out.commands.clear();
  if (gate_) {
    for (const TrialId trial : out.held) gate_->held(trial, controller.state().trials()[trial].steps);
    for (const TrialId trial : ended)
      if (!controller.holds_slot(trial)) gate_->left(trial);
    gate_->after_event();
    if (!out.held.empty()) wake();  // the deadline of the wait for events has changed
  }
  out.held.clear();
}

// Handles interruptions and timeouts. Called on the thread of run(), between its waits.
void Tuner::State::handle_timeouts(Seconds now) {
  on_strand([&] {
    experiment_->journal().require_sound();
    auto& controller = experiment_->controller();
    const int level = interrupts_.level();
    if (level >= 1 && !interrupted_at_) {
      interrupted_at_ = now;
      controller.interrupt();
      if (level == 1 && !controller.finished())
        experiment_->note(
            options_.handle_signals
                ? "interrupted: each trial leaves at its next report, with all saved; once more to leave now"
                : "stopped: each trial leaves at its next report, with all saved");
    }
    if (level >= 2 && !leave_by_) leave_by_ = now + leave_time;
    if (leave_by_ && now >= *leave_by_ && !controller.finished()) {
      left_behind_ = true;
      controller.abandon(now, out_);
      if (options_.handle_signals && !options_.exit_if_stuck)
        experiment_->note(
            "waiting for trials that do not return; all that was recorded is saved, and the next signal is "
            "this program's own");
    } else if (interrupted_at_ && !hurried_ && (level >= 2 || now >= *interrupted_at_ + options_.interrupt_grace)) {
      hurried_ = true;
      controller.interrupt_now(now, out_);
    } else {
      controller.tick(now, out_);
    }
    carry_out(out_, now);
    if (gate_ && !controller.finished()) process_due_events(now);  // events of trials whose host was given up
  });
}

// Starts the searcher's thread, so that reports are answered while the searcher computes. Its answer enters the strand
// like an event.
void Tuner::State::start_searcher_thread() {
  if (options_.ordered || options_.executor.synchronous()) return;
  auto& suggestions = experiment_->controller().suggestions();
  if (!suggestions.defer()) return;
  searcher_thread_ = std::thread([this, &suggestions] {
    while (suggestions.wait()) {
      if (!suggestions.work()) continue;
      on_strand([&] {
        const Seconds now = this->now();
        if (interrupts_.level() > 0) experiment_->controller().interrupt();
        experiment_->controller().fill(now, out_);
        carry_out(out_, now);
      });
      suggestions.answer_not_taken();
    }
  });
}

// Handles a request. Called on the pipe's thread.
ControlAnswer Tuner::State::control(const ControlRequest& request) {
  using Kind = ControlRequest::Kind;
  const bool leaves = request.kind == Kind::leave || request.kind == Kind::leave_now;
  if (leaves) {
    request.kind == Kind::leave ? stop() : stop_now();
    return {true,
            request.kind == Kind::leave ? "each trial leaves at its next report, with all saved" : "it leaves now"};
  }
  auto answer = requests_.ask(request, [this] { wake(); });
  if (!answer.done) return answer;
  try {
    experiment_->journal().flush();  // who asked may read the record next
  } catch (const Error& error) { return {false, error.what()}; }
  return answer;
}

ControlAnswer Tuner::State::carry_out(const ControlRequest& request) {
  auto answer = detail::RequestQueue::ending();
  on_strand([&] {
    auto& controller = experiment_->controller();
    if (controller.finished() || controller.why_ended()) return;
    if (interrupts_.level() > 0) {
      answer.text = "the experiment is being left";
      return;
    }
    const Seconds now = this->now();
    answer = controller.carry_out(request, now, out_);
    carry_out(out_, now);
  });
  return answer;
}

// Waits while nothing runs because the user has paused it: the executor has nothing to wait for.
void Tuner::State::wait_while_paused() {
  waits_while_paused_ = true;  // from now on a launch ends the wait
  if (is_paused()) {
    const Seconds now = this->now();
    requests_.wait(next_wake(now) - now);
  }
  waits_while_paused_ = false;
}

// Everything is decided and recorded by now: a slow searcher delays only this thread.
void Tuner::State::stop_searcher_thread() {
  if (!searcher_thread_.joinable()) return;
  over_.store(true, std::memory_order_release);
  auto& suggestions = experiment_->controller().suggestions();
  suggestions.close();
  if (!suggestions.wait_idle(leave_time) && options_.display != Display::quiet)
    experiment_->note("waiting for the searcher '" + suggestions.name() + "' to come back from what it computes");
  searcher_thread_.join();
}

// When handle_timeouts() has something to do even if no event comes.
Seconds Tuner::State::next_wake(Seconds now) {
  Seconds wake = now + 3600;
  const std::lock_guard guard(strand_);
  if (const auto limit = experiment_->controller().state().next_time_limit()) wake = std::min(wake, *limit);
  if (const auto limit = experiment_->controller().next_give_up()) wake = std::min(wake, *limit);
  if (interrupted_at_ && !hurried_) wake = std::min(wake, *interrupted_at_ + options_.interrupt_grace);
  if (leave_by_) wake = std::min(wake, *leave_by_);
  return wake;
}

Workload Tuner::State::workload() const {
  Workload workload;
  workload.each = options_.resources;
  workload.workers = options_.workers.min;
  workload.max_workers = options_.workers.max;
  workload.concurrency = options_.concurrency;
  workload.directory = directory_;
  workload.name = *options_.name;
  workload.ordered = options_.ordered;
  workload.quiet = options_.display == Display::quiet;
  workload.handle_signals = options_.handle_signals;
  workload.exit_if_stuck = options_.exit_if_stuck;
  const auto per_sample = trials_per_sample(space_, options_.search);
  if (options_.samples == 0 && per_sample == 1) return workload;
  workload.trials = std::max<std::int64_t>(1, options_.samples) * per_sample;
  if (options_.resume && has_journal(directory_)) {
    const Results before = Results::read(directory_);
    for (const auto& trial : before.trials()) {
      const bool again = options_.retry_failed && trial.state == TrialState::failed;
      *workload.trials -= !trial.known && is_final(trial.state) && !again ? 1 : 0;
    }
    workload.trials = std::max<std::int64_t>(0, *workload.trials);
  }
  return workload;
}

ExecutorFacts Tuner::State::executor_facts() const {
  const auto& executor = options_.executor;
  ExecutorFacts facts;
  facts.hosts = executor.hosts();
  facts.name = executor.name();
  facts.survivors = executor.simulated();
  facts.startup = executor.startup();
  facts.gangs = executor.gangs();
  // Ordered runs and synchronous executors are reproducible, so their decisions must not depend on durations. Simulated
  // time is reproducible itself.
  facts.timed = executor.simulated() || !(options_.ordered || executor.synchronous());
  return facts;
}

ExecutorStart Tuner::State::executor_start() {
  ExecutorStart start;
  start.program = program_;
  start.directory = directory_;
  start.sink = [this](Event event) { post(std::move(event)); };
  start.hang_timeout = options_.hang_timeout;
  start.log_limit = options_.log_limit;
  start.network = options_.group.network;
  return start;
}

// Makes the experiment's folder. If another driver of the same name has just made it, takes the next one.
detail::FreshFolder Tuner::State::claim_folder() {
  std::vector<std::filesystem::path> taken;
  for (;;) {
    detail::FreshFolder folder(directory_);
    if (folder.is_new() || options_.resume || !options_.output.empty()) return folder;
    if (!detail::is_just_made(directory_) && !has_journal(directory_)) return folder;
    taken.push_back(directory_);
    directory_ = experiment_directory(options_, taken);
  }
}

// Makes or opens the experiment's record. Returns the dashboard, if one is wanted.
std::shared_ptr<void> Tuner::State::open_experiment(const ExecutorFacts& facts, const detail::FreshFolder& folder) {
  auto& executor = options_.executor;
  std::shared_ptr<void> page;
  try {
    // The dashboard starts threads, and its port may be taken: so after the forks and before anything is recorded.
    if (options_.dashboard) page = options_.dashboard(directory_);
    auto experiment = std::make_unique<Experiment>(space_, options_, directory_, facts);
    const std::lock_guard guard(strand_);
    experiment_ = std::move(experiment);
  } catch (...) {  // for example a warm start from a folder without an experiment
    folder.remove_empty();
    throw;
  }
  if (experiment_->resumed()) {
    executor.restore_clock(experiment_->last_time());
    if (!executor.simulated()) ahead_ = std::max(0.0, experiment_->last_time() - executor.now());
  }
  if (options_.ordered) gate_.emplace(experiment_->take_gate());
  experiment_->journal().on_error([this](const Error&) { wake(); });  // handle_timeouts() throws the error
  return page;
}

// From the first trial until nothing more is to be done.
void Tuner::State::drive() {
  auto& executor = options_.executor;
  on_strand([&] {
    const Seconds now = this->now();
    begun_ = true;
    if (interrupts_.level() > 0) experiment_->controller().interrupt();  // stopped before it began: no trial starts
    experiment_->begin(options_, now, out_);
    carry_out(out_, now);
    if (!gate_) return;
    for (const TrialId trial : gate_->awaited())  // no room for them now, or they have ended
      if (!experiment_->controller().holds_slot(trial)) gate_->left(trial);
  });
  while (!over_.load(std::memory_order_acquire)) {
    try {
      if (is_paused())
        wait_while_paused();
      else
        executor.wait(next_wake(now()) - ahead_);
      answer_requests();
    } catch (...) {  // the run cannot go on
      on_strand([error = std::current_exception()] { std::rethrow_exception(error); });
    }
    handle_timeouts(now());
  }
}

// Records why the run cannot go on, and throws it.
void Tuner::State::fail_run(const detail::FreshFolder& folder) {
  // If the experiment's folder was moved or removed, any file in it may be the first to fail. The Journal knows the
  // cause.
  if (error_code_of(error_) == Errc::io) {
    try {
      experiment_->journal().require_in_place();
    } catch (...) { error_ = std::current_exception(); }
  }
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& e) { experiment_->journal().note_exit_reason(e.what()); } catch (...) {
    experiment_->journal().note_exit_reason("an exception that is no std::exception");
  }
  if (!experiment_->resumed() && experiment_->controller().state().trials().size() == 0) {
    experiment_->journal().stop_checking_files();
    folder.take_back([this] { experiment_.reset(); });
  }
  std::rethrow_exception(error_);
}

Results Tuner::State::run() {
  process::open_standard_descriptors();
  if (const auto& instead = detail::agent_hook()) instead(options_.name, program_);
  options_ = with_recorded(std::move(options_), space_);
  directory_ = experiment_directory(options_);
  detail::say_which_is_resumed(options_, directory_);
  Experiment::require_sound(space_, options_);
  auto& executor = options_.executor;
  if (executor.elastic() && !options_.resume && has_journal(directory_)) Experiment::refuse_to_overwrite(directory_);
  const auto folder = claim_folder();
  if (!executor.elastic()) return run_in(folder);
  try {
    executor.prepare(workload());
  } catch (...) {
    folder.remove_empty();
    throw;
  }
  struct Teardown {
    AnyExecutor& executor;
    bool unfinished = true;  // after exceptions that say nothing
    ~Teardown() { executor.teardown(unfinished); }
  } teardown{executor};
  try {
    auto results = run_in(folder);
    teardown.unfinished = experiment_->controller().interrupted();
    return results;
  } catch (const Error& error) {
    teardown.unfinished = may_pass(error.code());
    throw;
  }
}

// The executor has been prepared.
Results Tuner::State::run_in(const detail::FreshFolder& folder) {
  auto& executor = options_.executor;
  ExecutorFacts facts;
  try {
    facts = executor_facts();
    Experiment::require_possible(options_, facts);
    // Before this process starts any thread of its own: the executor may fork here.
    executor.start(executor_start());
  } catch (...) {
    folder.remove_empty();
    throw;
  }
  struct Shutdown {
    AnyExecutor* executor;
    ~Shutdown() { now(); }
    void now() {
      if (auto* one = std::exchange(executor, nullptr)) one->shutdown();
    }
  } shutdown{&executor};
  const auto page = open_experiment(facts, folder);
  std::optional<SignalWatch> signals;
  if (options_.handle_signals && !executor.simulated())
    signals.emplace([this](int level) { level > 1 ? stop_now() : stop(); },
                    options_.exit_if_stuck ? AfterSecondSignal::leave : AfterSecondSignal::hand_back);
  running_.store(true, std::memory_order_release);
  struct SearcherThreadEnd {
    State& self;
    ~SearcherThreadEnd() { self.stop_searcher_thread(); }
  } const searcher_thread_end{*this};
  start_searcher_thread();
  // Before any trial begins, so that requests work as soon as a trial is seen. Not in a simulation, whose time is not
  // the user's.
  std::optional<ControlPipe> control;
  if (!executor.simulated())
    control.emplace(directory_, [this](const ControlRequest& request) { return this->control(request); });
  struct ControlEnd {
    State& self;
    std::optional<ControlPipe>& control;
    ~ControlEnd() {
      self.requests_.close();
      self.answer_requests();
      control.reset();
    }
  };
  std::optional<ControlEnd> control_end(std::in_place, *this, control);
  drive();
  running_.store(false, std::memory_order_release);
  control_end.reset();
  const auto end = [&] {
    const auto& controller = experiment_->controller();
    experiment_->end(now(), controller.interrupted(), controller.why_ended().value_or(controller.why_fewer()));
  };
  // If trials were abandoned, shutdown() may wait for their threads for long, and the user may kill the process: so
  // record the end first.
  const bool end_first = left_behind_ && !error_;
  if (end_first) end();
  shutdown.now();  // no event comes after this
  if (!error_ && !end_first) end();
  stop_searcher_thread();
  if (error_) fail_run(folder);
  if (!interrupts_.level()) experiment_->controller().suggestions().tell_remaining();
  return experiment_->results();
}

Tuner::Tuner(SearchSpace space, std::shared_ptr<const Program> program, Options options)
    : state_(std::make_unique<State>(std::move(space), std::move(program), std::move(options))) {}
Tuner::~Tuner() {
  if (!state_->thread.joinable()) return;
  state_->stop_now();
  state_->thread.join();
}
Results Tuner::run() {
  state_->claim();
  return state_->run();
}
Results Tuner::run(std::stop_token token) {
  const std::stop_callback on_stop(std::move(token), [this] { stop(); });
  return run();
}
void Tuner::start(std::function<void(std::exception_ptr, Results)> done) {
  try {
    state_->claim();
    state_->thread = std::thread([state = state_.get(), done] {
      std::exception_ptr error;
      Results results;
      try {
        results = state->run();
      } catch (...) { error = std::current_exception(); }
      done(std::move(error), std::move(results));
    });
  } catch (...) { done(std::current_exception(), Results()); }
}
void Tuner::stop() { state_->stop(); }
void Tuner::stop_now() { state_->stop_now(); }
const std::filesystem::path& Tuner::directory() const { return state_->directory(); }
std::string Tuner::why_pending(TrialId trial) { return state_->why_pending(trial); }

}  // namespace hypertune::inline v0
