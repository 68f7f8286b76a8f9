// Study: definitions.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/tune/detail/experiment.hpp>
#include <hypertune/tune/detail/requests/control.hpp>
#include <hypertune/tune/detail/resumption.hpp>
#include <hypertune/tune/study.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

class ErasedStudy::State {
 public:
  State(SearchSpace space, Options options)
      : options_(with_recorded(std::move(options), space)),
        experiment_(std::move(space), options_, experiment_directory(options_), facts()) {
    experiment_.journal().on_error([this](const Error& error) { experiment_.note(error.what()); });
    if (options_.dashboard) page_ = options_.dashboard(experiment_.directory());
    ahead_ = std::max(0.0, experiment_.last_time() - run_clock());
    Outcome out;
    experiment_.controller().suggestions().defer();
    experiment_.begin(options_, now(), out);
    experiment_.write(out, now());
    control_.emplace(experiment_.directory(), [this](const ControlRequest& request) { return carry_out(request); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    control_.reset();  // no more requests
    try {
      const std::lock_guard guard(mutex_);
      Outcome out;
      experiment_.controller().interrupt();
      experiment_.end(now(), left_ || !experiment_.controller().finished(), "");
    } catch (const Error&) {  // the disk failed earlier and the caller knows
    }
  }

  std::optional<Ask> ask() {
    const std::lock_guard turn(asking_);
    auto& suggestions = experiment_.controller().suggestions();
    give_up_silent();
    for (;;) {
      if (auto asked = try_ask()) return std::move(*asked);
      suggestions.work();  // concurrently with report() and tell()
    }
  }
  void require_sound() { experiment_.journal().require_sound(); }
  bool exhausted() const {
    const std::lock_guard guard(mutex_);
    const auto& controller = experiment_.controller();
    const bool comes_back = options_.max_retries > 0 && !out_.empty();  // trials that are out may fail
    return (controller.exhausted() && !comes_back) || controller.why_ended() || controller.finished() ||
           controller.interrupted();
  }
  std::vector<TrialId> out() const {
    const std::lock_guard guard(mutex_);
    std::vector<TrialId> trials;
    for (const auto& [trial, given] : out_) trials.push_back(trial);
    return trials;
  }

  Decision report(TrialId trial, Report report) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    if (report.step) Report::require_step(*report.step);
    require_new_step(trial, report);
    Outcome out;
    const Attempt attempt = experiment_.controller().attempt(trial);
    handle(Reported{trial, attempt, std::move(report), std::nullopt}, out);
    // A trial that was told to stop since its last report learns of it now.
    Decision decision = stopped_.erase(trial) > 0 ? Decision::stop : Decision::proceed;
    for (const auto& command : out.commands) {
      if (const auto* pause = std::get_if<Pause>(&command); pause != nullptr && pause->trial == trial)
        decision = Decision::pause;
    }
    out.commands.clear();
    if (decision != Decision::proceed) out_.erase(trial);
    if (decision == Decision::pause) handle(Paused{trial, attempt, true}, out);
    if (decision == Decision::stop) {
      handle(Stopped{trial, attempt}, out);
      const TrialState state = experiment_.controller().state().trials()[trial].state;
      if (state == TrialState::completed) decision = Decision::complete;
      if (!is_final(state)) decision = Decision::pause;  // the study is being stopped
    }
    experiment_.journal().flush();
    return decision;
  }

  void tell(TrialId trial, Report result) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    const auto objectives = experiment_.controller().state().objectives();
    for (const auto& objective : objectives)
      if (find_metric(result.metrics, objective.metric) == nullptr)
        fail(Errc::usage, "trial {} was told without a value of '{}'", trial, objective.metric);
    if (result.step) Report::require_step(*result.step);
    require_new_step(trial, result);
    Outcome out;
    const Attempt attempt = experiment_.controller().attempt(trial);
    handle(Reported{trial, attempt, std::move(result), std::nullopt}, out);
    out.commands.clear();
    stopped_.erase(trial);
    out_.erase(trial);
    handle(Finished{trial, attempt}, out);
    experiment_.journal().flush();
  }
  void tell(TrialId trial, double value) { tell(trial, Report(Metrics{{objective(), value}})); }
  void tell(TrialId trial, const std::vector<double>& values) {
    const auto& objectives = experiment_.controller().state().objectives();
    if (values.size() != objectives.size())
      fail(Errc::usage, "trial {}: {} values for {} objectives", trial, values.size(), objectives.size());
    Metrics metrics;
    for (std::size_t i = 0; i < values.size(); ++i) metrics.emplace_back(objectives[i].metric, values[i]);
    tell(trial, Report(std::move(metrics)));
  }
  void tell_failed(TrialId trial, std::string why) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    Outcome out;
    fail_out(trial, std::move(why), out);
    experiment_.journal().flush();
  }

  /// `trial` -1: the study.
  void note(TrialId trial, const Attributes& attributes) {
    const std::lock_guard guard(mutex_);
    Outcome out;
    const Seconds now = this->now();
    if (const auto given = out_.find(trial); given != out_.end()) given->second.heard = now;
    experiment_.controller().note(trial, attributes, now, out);
    experiment_.write(out, now);
    experiment_.journal().flush();
  }
  void on_leave(std::function<void()> leave) {
    const std::lock_guard guard(mutex_);
    leave_ = std::move(leave);
  }

  Results results() {
    experiment_.journal().drain();
    return experiment_.results();
  }
  std::string objective() const { return objectives().front().metric; }
  const std::vector<Objective>& objectives() const { return experiment_.controller().state().objectives(); }
  const std::filesystem::path& directory() const { return experiment_.directory(); }

 private:
  // At the end of a call: tells the searcher the new observations, unless another thread is asking it.
  struct Teaching {
    State& self;
    ~Teaching() {
      if (const std::unique_lock turn(self.asking_, std::try_to_lock); turn)
        self.experiment_.controller().suggestions().work();
    }
  };
  // Carries out a request from another terminal. Called on the pipe's thread. It cannot end the caller's trials; each
  // learns of its end at its next report.
  ControlAnswer carry_out(const ControlRequest& request) {
    using Kind = ControlRequest::Kind;
    std::unique_lock guard(mutex_);
    auto& controller = experiment_.controller();
    if (request.kind == Kind::leave || request.kind == Kind::leave_now) {
      left_ = left_ || !controller.finished();
      controller.interrupt();
      const auto leave = leave_;
      guard.unlock();
      if (leave) leave();
      return {true, "no more trials are given out; what was told is saved"};
    }
    if (controller.interrupted()) return {false, "the study is being left"};
    Outcome out;
    const Seconds now = this->now();
    auto answer = controller.carry_out(request, now, out);
    follow_stops(out);
    experiment_.write(out, now);
    return answer;
  }

  // nullopt: the searcher has to compute a suggestion first. An empty inner value: there is no trial.
  std::optional<std::optional<Ask>> try_ask() {
    const std::lock_guard guard(mutex_);
    Outcome out;
    auto& controller = experiment_.controller();
    if (controller.interrupted()) return std::optional<Ask>();
    const Seconds now = this->now();
    const auto trial = controller.ask(now, out);
    std::optional<Ask> asked;
    for (const auto& command : out.commands)
      if (const auto* go = std::get_if<Launch>(&command); go != nullptr && trial && go->trial == *trial)
        asked = Ask{go->trial, go->params, go->point, go->next_step, go->seed};
    if (asked) out_[asked->trial] = Given{.next_step = asked->next_step, .heard = now, .last = {}};
    experiment_.write(out, now);
    if (!asked && controller.suggestions().has_open_request()) return std::nullopt;
    experiment_.journal().flush();
    return asked;
  }
  // Never earlier than the last recorded time, even if the machine's clock was set back.
  Seconds now() const { return run_clock() + ahead_; }
  static ExecutorFacts facts() {
    ExecutorFacts facts;
    constexpr double plenty = 1e6;  // the caller decides how many trials run at once
    facts.hosts = {Host{.name = "caller", .total = {.cpus = plenty, .gpus = plenty, .memory = 0, .custom = {}}}};
    facts.name = "ask/tell";
    facts.manual = true;
    return facts;
  }
  // A step at or before the last one would be dropped silently, so it is an error. The same report as the last one is
  // accepted: the answer to it may have been lost. After ask() has handed out a trial again, earlier steps may be
  // repeated.
  void require_new_step(TrialId trial, const Report& report) {
    Given& given = out_[trial];
    const int step = report.step.value_or(given.next_step);
    if (given.last) {
      const auto same = [](const auto& a, const auto& b) {
        return a.first == b.first && (a.second == b.second || (std::isnan(a.second) && std::isnan(b.second)));
      };
      const auto& [last, metrics] = *given.last;
      const bool again = step == last &&
                         std::equal(metrics.begin(), metrics.end(), report.metrics.begin(), report.metrics.end(), same);
      if (step <= last && !again)
        fail(Errc::usage,
             "trial {} has reported step {} already, and this is step {}{}: steps rise; left out, it is the one after "
             "the "
             "last",
             trial, last, step, step == last ? " with other values" : "");
    }
    given.last.emplace(step, report.metrics);
    given.next_step = step + 1;
    given.heard = now();
  }
  void fail_out(TrialId trial, std::string why, Outcome& out) {
    stopped_.erase(trial);
    out_.erase(trial);
    handle(Failed{trial, experiment_.controller().attempt(trial), Cause{.text = std::move(why)}}, out);
  }
  // Fails trials that no call has mentioned for hang_timeout seconds; nothing else is known about the callers. Checked in
  // ask(), because nobody could get a free trial before that.
  void give_up_silent() {
    if (options_.hang_timeout <= 0) return;
    const std::lock_guard guard(mutex_);
    std::vector<TrialId> silent;
    for (const auto& [trial, given] : out_)
      if (now() - given.heard > options_.hang_timeout) silent.push_back(trial);
    Outcome out;
    for (const TrialId trial : silent)
      fail_out(trial, detail::format("not heard of for {:g} s", options_.hang_timeout), out);
  }
  void handle(Event event, Outcome& out) {
    const Seconds now = this->now();  // one time for the decisions and their records, so that a replay uses the same
    experiment_.controller().handle(std::move(event), now, out);
    follow_stops(out);
    experiment_.write(out, now);
  }
  // Notes the trials that are to end, for whatever reason: each learns of it at its next report.
  void follow_stops(const Outcome& out) {
    for (const auto& command : out.commands)
      if (const auto* stop = std::get_if<Stop>(&command)) stopped_.insert(stop->trial);
  }
  void require_running(TrialId trial) const {
    const auto& trials = experiment_.controller().state().trials();
    if (!trials.contains(trial)) fail(Errc::usage, "there is no trial {}: {} were asked for", trial, trials.size());
    if (trials[trial].state != TrialState::running)
      fail(Errc::usage, "trial {} is {}: only a running trial can report or be told", trial,
           to_string(trials[trial].state));
  }

  // A trial that is out: the caller runs it.
  struct Given {
    int next_step = 0;
    Seconds heard = 0;                            // time of the last call about it
    std::optional<std::pair<int, Metrics>> last;  // last step and metrics reported since it was handed out
  };

  Options options_;
  std::shared_ptr<void> page_;  // shows the folder until the end is recorded
  std::mutex asking_;           // one suggestion at a time: each must take the one before into account
  mutable std::mutex mutex_;
  Experiment experiment_;
  Seconds ahead_ = 0;          // added to the clock
  std::set<TrialId> stopped_;  // told to stop; their callers do not know yet
  std::map<TrialId, Given> out_;
  std::function<void()> leave_;
  bool left_ = false;                   // stopped by the user before everything was done
  std::optional<ControlPipe> control_;  // last: its thread uses the others
};

ErasedStudy::ErasedStudy(SearchSpace space, Options options)
    : state_(std::make_unique<State>(std::move(space), std::move(options))) {}
ErasedStudy::~ErasedStudy() = default;
auto ErasedStudy::ask() -> std::optional<Ask> { return state_->ask(); }
void ErasedStudy::require_sound() { state_->require_sound(); }
bool ErasedStudy::exhausted() const { return state_->exhausted(); }
std::vector<TrialId> ErasedStudy::out() const { return state_->out(); }
Decision ErasedStudy::report(TrialId trial, Metrics metrics, std::optional<int> step) {
  Report report(std::move(metrics));
  report.step = step;
  return state_->report(trial, std::move(report));
}
Decision ErasedStudy::report(TrialId trial, Report report) { return state_->report(trial, std::move(report)); }
void ErasedStudy::note(TrialId trial, const Attributes& attributes) {
  if (trial < 0) fail(Errc::usage, "there is no trial {}", trial);
  state_->note(trial, attributes);
}
void ErasedStudy::note(const Attributes& attributes) { state_->note(-1, attributes); }
void ErasedStudy::on_leave(std::function<void()> leave) { state_->on_leave(std::move(leave)); }
void ErasedStudy::tell(TrialId trial, Metrics metrics) { state_->tell(trial, Report(std::move(metrics))); }
void ErasedStudy::tell(TrialId trial, Report result) { state_->tell(trial, std::move(result)); }
void ErasedStudy::tell(TrialId trial, double value) { state_->tell(trial, value); }
void ErasedStudy::tell(TrialId trial, const std::vector<double>& values) { state_->tell(trial, values); }
void ErasedStudy::tell_failed(TrialId trial, std::string why) { state_->tell_failed(trial, std::move(why)); }
Results ErasedStudy::results() { return state_->results(); }
std::string ErasedStudy::objective() const { return state_->objective(); }
const std::vector<Objective>& ErasedStudy::objectives() const { return state_->objectives(); }
const std::filesystem::path& ErasedStudy::directory() const { return state_->directory(); }

}  // namespace hypertune::inline v0
