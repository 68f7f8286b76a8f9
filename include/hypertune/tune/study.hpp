// Study: ask and tell, for those who own the loop.
#pragma once

#include <hypertune/space/space.hpp>
#include <hypertune/tune/experiment.hpp>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hypertune {

/// An experiment whose trials the caller runs. ask() gives a trial, report() asks whether it should go on, tell() ends
/// it; all are recorded like any other experiment, and what was told is durable when tell() returns. A Study opened
/// with
/// `.resume = true` knows all earlier results; trials that were asked for and never told are given out again.
/// Thread-safe. ErasedStudy is the part that does not know the user's Config (the HTTP server uses it).
class ErasedStudy {
 public:
  ErasedStudy(SearchSpace space, Options options)
      : options_(std::move(options)), experiment_(std::move(space), options_, experiment_directory(options_), facts()) {
    Outcome out;
    experiment_.begin(options_, now(), out);
    experiment_.write(out, now());
  }
  ErasedStudy(const ErasedStudy&) = delete;
  ErasedStudy& operator=(const ErasedStudy&) = delete;
  ~ErasedStudy() {
    try {
      const std::lock_guard guard(mutex_);
      Outcome out;
      experiment_.controller().interrupt();
      experiment_.end(now(), !experiment_.controller().finished(), "");
    } catch (const Error&) {  // the disk failed earlier and the caller knows
    }
  }

  /// One trial to run.
  struct Ask {
    TrialId trial;
    Params params;
    Point point;
    int next_step = 0;  ///< 0 at a fresh start; more when a paused trial goes on
    std::uint64_t seed = 0;
  };

  /// The next trial; nullopt when there is none now (limit(), a scheduler that waits) or ever: see exhausted().
  std::optional<Ask> ask() {
    const std::lock_guard guard(mutex_);
    Outcome out;
    auto& controller = experiment_.controller();
    const auto trial = controller.ask(now(), out);
    std::optional<Ask> asked;
    for (const auto& command : out.commands)
      if (const auto* go = std::get_if<Launch>(&command); go != nullptr && trial && go->trial == *trial)
        asked = Ask{go->trial, go->params, go->point, go->next_step, go->seed};
    experiment_.write(out, now());
    experiment_.journal().flush();
    return asked;
  }
  bool exhausted() const {
    const std::lock_guard guard(mutex_);
    const auto& controller = experiment_.controller();
    return controller.exhausted() || controller.why_ended() || controller.finished();
  }

  /// An intermediate result after step number `step` (from 0; by default the one after the last). The answer says what
  /// to do: on `pause` the trial comes back from a later ask(); on `stop` and `complete` it has ended: do not tell()
  /// it.
  Decision report(TrialId trial, Metrics metrics, std::optional<int> step = std::nullopt) {
    const std::lock_guard guard(mutex_);
    require_running(trial);
    Report report(std::move(metrics));
    report.step = step;
    if (step && *step < 0) fail(Errc::usage, "trial {}: step {} is negative: steps count from 0", trial, *step);
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

  /// Ends a trial with its result.
  void tell(TrialId trial, Metrics metrics) {
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
  /// Ends a trial that failed. It is tried again while options.max_failures allows: then ask() gives it out again.
  void tell_failed(TrialId trial, std::string why = "told as failed") {
    const std::lock_guard guard(mutex_);
    require_running(trial);
    Outcome out;
    handle(Failed{trial, experiment_.controller().attempt(trial), Cause{.text = std::move(why)}}, out);
    experiment_.journal().flush();
  }

  /// What is known so far; everything told is in it.
  Results results() {
    experiment_.journal().drain();
    return experiment_.results();
  }
  std::string objective() const { return experiment_.controller().state().objectives().front().metric; }
  const std::filesystem::path& directory() const { return experiment_.directory(); }

 private:
  static Seconds now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
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
  mutable std::mutex mutex_;
  Experiment experiment_;
};

/// A Study over the user's own configuration type.
template <class Config>
class Study {
 public:
  Study(const Space<Config>& space, AnySearcher search, Options options = {})
      : space_(space), study_(space.search_space(), with(std::move(search), std::move(options))) {}
  Study(const Space<Config>& space, Options options)
      : space_(space), study_(space.search_space(), std::move(options)) {}

  struct Trial {
    TrialId id;
    Config config;
    int next_step = 0;
    std::uint64_t seed = 0;
  };
  std::optional<Trial> ask() {
    auto asked = study_.ask();
    if (!asked) return std::nullopt;
    return Trial{asked->trial, space_.config(asked->point), asked->next_step, asked->seed};
  }
  Decision report(const Trial& trial, double value, std::optional<int> step = std::nullopt) {
    return study_.report(trial.id, Metrics{{study_.objective(), value}}, step);
  }
  Decision report(const Trial& trial, Metrics metrics, std::optional<int> step = std::nullopt) {
    return study_.report(trial.id, std::move(metrics), step);
  }
  void tell(const Trial& trial, double value) { study_.tell(trial.id, value); }
  void tell(const Trial& trial, Metrics metrics) { study_.tell(trial.id, std::move(metrics)); }
  void tell_failed(const Trial& trial, std::string why = "told as failed") {
    study_.tell_failed(trial.id, std::move(why));
  }
  bool exhausted() const { return study_.exhausted(); }
  Results results() { return study_.results(); }
  const std::filesystem::path& directory() const { return study_.directory(); }

 private:
  static Options with(AnySearcher search, Options options) {
    options.search = std::move(search);
    return options;
  }
  Space<Config> space_;
  ErasedStudy study_;
};

}  // namespace hypertune
