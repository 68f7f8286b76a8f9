// How a Study keeps its experiment.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/tune/experiment.hpp>
#include <hypertune/tune/resumption.hpp>
#include <hypertune/tune/study.hpp>

#include <algorithm>
#include <mutex>
#include <variant>

namespace hypertune {

template <class Lazy>
class BasicErasedStudy<Lazy>::State {
 public:
  State(SearchSpace space, Options options)
      : options_(with_recorded(std::move(options), space)),
        experiment_(std::move(space), options_, experiment_directory(options_), facts()) {
    experiment_.journal().on_error([this](const Error& error) { experiment_.note(error.what()); });
    ahead_ = std::max(0.0, experiment_.last_time() - run_clock());
    Outcome out;
    experiment_.controller().suggestions().defer();
    experiment_.begin(options_, now(), out);
    experiment_.write(out, now());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    try {
      const std::lock_guard guard(mutex_);
      Outcome out;
      experiment_.controller().interrupt();
      experiment_.end(now(), !experiment_.controller().finished(), "");
    } catch (const Error&) {  // the disk failed earlier and the caller knows
    }
  }

  std::optional<Ask> ask() {
    const std::lock_guard turn(asking_);
    auto& suggestions = experiment_.controller().suggestions();
    for (;;) {
      if (auto asked = try_ask()) return std::move(*asked);
      suggestions.work();  // beside report() and tell()
    }
  }
  void require_sound() { experiment_.journal().require_sound(); }
  bool exhausted() const {
    const std::lock_guard guard(mutex_);
    const auto& controller = experiment_.controller();
    return controller.exhausted() || controller.why_ended() || controller.finished();
  }

  Decision report(TrialId trial, Metrics metrics, std::optional<int> step) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    Report report(std::move(metrics));
    report.step = step;
    if (step) Report::require_step(*step);
    Outcome out;
    const Attempt attempt = experiment_.controller().attempt(trial);
    handle(Reported{trial, attempt, std::move(report), std::nullopt}, out);
    Decision decision = Decision::go_on;
    for (const auto& command : out.commands) {
      if (const auto* stop = std::get_if<Stop>(&command); stop != nullptr && stop->trial == trial)
        decision = Decision::stop;
      if (const auto* pause = std::get_if<Pause>(&command); pause != nullptr && pause->trial == trial)
        decision = Decision::pause;
    }
    out.commands.clear();
    if (decision == Decision::pause) handle(Paused{trial, attempt, true}, out);
    if (decision == Decision::stop) {
      handle(Stopped{trial, attempt}, out);
      if (experiment_.controller().state().trials()[trial].state == TrialState::completed)
        decision = Decision::complete;
    }
    experiment_.journal().flush();
    return decision;
  }

  void tell(TrialId trial, Metrics metrics) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    const auto objectives = experiment_.controller().state().objectives();
    for (const auto& objective : objectives)
      if (find_metric(metrics, objective.metric) == nullptr)
        fail(Errc::usage, "trial {} was told without a value of '{}'", trial, objective.metric);
    Outcome out;
    const Attempt attempt = experiment_.controller().attempt(trial);
    handle(Reported{trial, attempt, Report(std::move(metrics)), std::nullopt}, out);
    out.commands.clear();
    handle(Finished{trial, attempt}, out);
    experiment_.journal().flush();
  }
  void tell(TrialId trial, double value) { tell(trial, Metrics{{objective(), value}}); }
  void tell(TrialId trial, const std::vector<double>& values) {
    const auto& objectives = experiment_.controller().state().objectives();
    if (values.size() != objectives.size())
      fail(Errc::usage, "trial {}: {} values for {} objectives", trial, values.size(), objectives.size());
    Metrics metrics;
    for (std::size_t i = 0; i < values.size(); ++i) metrics.emplace_back(objectives[i].metric, values[i]);
    tell(trial, std::move(metrics));
  }
  void tell_failed(TrialId trial, std::string why) {
    const Teaching teaching{*this};
    const std::lock_guard guard(mutex_);
    require_running(trial);
    Outcome out;
    handle(Failed{trial, experiment_.controller().attempt(trial), Cause{.text = std::move(why)}}, out);
    experiment_.journal().flush();
  }

  Results results() {
    experiment_.journal().drain();
    return experiment_.results();
  }
  std::string objective() const { return objectives().front().metric; }
  const std::vector<Objective>& objectives() const { return experiment_.controller().state().objectives(); }
  const std::filesystem::path& directory() const { return experiment_.directory(); }

 private:
  // The searcher learns what it is told after the call that told it, unless it is being asked.
  struct Teaching {
    State& self;
    ~Teaching() {
      if (const std::unique_lock turn(self.asking_, std::try_to_lock); turn)
        self.experiment_.controller().suggestions().work();
    }
  };
  // nullopt: the searcher has to be asked; an empty answer: there is no trial.
  std::optional<std::optional<Ask>> try_ask() {
    const std::lock_guard guard(mutex_);
    Outcome out;
    auto& controller = experiment_.controller();
    const auto trial = controller.ask(now(), out);
    std::optional<Ask> asked;
    for (const auto& command : out.commands)
      if (const auto* go = std::get_if<Launch>(&command); go != nullptr && trial && go->trial == *trial)
        asked = Ask{go->trial, go->params, go->point, go->next_step, go->seed};
    experiment_.write(out, now());
    if (!asked && controller.suggestions().wanted()) return std::nullopt;
    experiment_.journal().flush();
    return asked;
  }
  // Never before what the record ends with, wherever the clock of the machine was set in between.
  Seconds now() const { return run_clock() + ahead_; }
  static ExecutorFacts facts() {
    ExecutorFacts facts;
    constexpr double plenty = 1e6;  // the caller decides how many trials run at once
    facts.hosts = {Host{.name = "caller", .total = {.cpus = plenty, .gpus = plenty, .memory = 0, .custom = {}}}};
    facts.name = "ask/tell";
    facts.manual = true;
    return facts;
  }
  void handle(Event event, Outcome& out) {
    experiment_.controller().handle(std::move(event), now(), out);
    experiment_.write(out, now());
  }
  void require_running(TrialId trial) const {
    const auto& trials = experiment_.controller().state().trials();
    if (!trials.contains(trial)) fail(Errc::usage, "there is no trial {}: {} were asked for", trial, trials.size());
    if (trials[trial].state != TrialState::running)
      fail(Errc::usage, "trial {} is {}: only a running trial can report or be told", trial,
           to_string(trials[trial].state));
  }

  Options options_;
  std::mutex asking_;  // one suggestion after the other: each has to know of the one before
  mutable std::mutex mutex_;
  Experiment experiment_;
  Seconds ahead_ = 0;  // of the clock
};

template <class Lazy>
BasicErasedStudy<Lazy>::BasicErasedStudy(SearchSpace space, Options options)
    : self_(std::make_unique<State>(std::move(space), std::move(options))) {}
template <class Lazy>
BasicErasedStudy<Lazy>::~BasicErasedStudy() = default;
template <class Lazy>
auto BasicErasedStudy<Lazy>::ask() -> std::optional<Ask> {
  return self_->ask();
}
template <class Lazy>
void BasicErasedStudy<Lazy>::require_sound() {
  self_->require_sound();
}
template <class Lazy>
bool BasicErasedStudy<Lazy>::exhausted() const {
  return self_->exhausted();
}
template <class Lazy>
Decision BasicErasedStudy<Lazy>::report(TrialId trial, Metrics metrics, std::optional<int> step) {
  return self_->report(trial, std::move(metrics), step);
}
template <class Lazy>
void BasicErasedStudy<Lazy>::tell(TrialId trial, Metrics metrics) {
  self_->tell(trial, std::move(metrics));
}
template <class Lazy>
void BasicErasedStudy<Lazy>::tell(TrialId trial, double value) {
  self_->tell(trial, value);
}
template <class Lazy>
void BasicErasedStudy<Lazy>::tell(TrialId trial, const std::vector<double>& values) {
  self_->tell(trial, values);
}
template <class Lazy>
void BasicErasedStudy<Lazy>::tell_failed(TrialId trial, std::string why) {
  self_->tell_failed(trial, std::move(why));
}
template <class Lazy>
Results BasicErasedStudy<Lazy>::results() {
  return self_->results();
}
template <class Lazy>
std::string BasicErasedStudy<Lazy>::objective() const {
  return self_->objective();
}
template <class Lazy>
const std::vector<Objective>& BasicErasedStudy<Lazy>::objectives() const {
  return self_->objectives();
}
template <class Lazy>
const std::filesystem::path& BasicErasedStudy<Lazy>::directory() const {
  return self_->directory();
}

}  // namespace hypertune
