// Study: the ask/tell interface, for programs that run the loop themselves.
#pragma once

#include <hypertune/detail/definitions.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/space/space.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/tune/options.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// An experiment whose trials the caller runs. ask() returns a trial, report() asks whether it should go on, tell()
/// ends it. Everything is recorded as in any other experiment; a result is durable when tell() returns. A Study opened
/// with `.resume = true` knows all earlier results, and hands out again the trials that were asked for and never told.
/// The constructor throws what Tuner::run() throws at its beginning; calls that record throw an Error of kind `io` once
/// that is not possible any more.
///
/// Thread-safe. From another terminal the user may stop, pause, continue and annotate its trials, add a trial, or stop
/// the whole study (`hypertune stop DIR`): then ask() returns no more trials, exhausted() is true, and trials that
/// report are told to pause. ErasedStudy is the part that does not depend on the user's Config (the HTTP server uses
/// it).
class ErasedStudy {
 public:
  ErasedStudy(SearchSpace space, Options options);
  ErasedStudy(const ErasedStudy&) = delete;
  ErasedStudy& operator=(const ErasedStudy&) = delete;
  ~ErasedStudy();

  /// One trial to run.
  struct Ask {
    TrialId trial;
    Params params;
    Point point;
    int next_step = 0;  ///< 0 at a fresh start; above 0 when a trial goes on
    std::uint64_t seed = 0;
  };

  /// The next trial; nullopt if there is none now (limit(), a scheduler that waits), or never will be: see exhausted().
  /// First marks as failed the trials that are out and were not mentioned in any call for longer than
  /// options.hang_timeout.
  std::optional<Ask> ask();
  bool exhausted() const;
  /// The trials that are out: asked for, not told yet, and not ended or paused by the answer to their last report.
  std::vector<TrialId> out() const;

  /// Reports an intermediate result after step number `step` (from 0; by default the one after the last). Returns what
  /// to do: after `pause` a later ask() returns the trial again; after `stop` and `complete` it has ended: do not call
  /// tell(). Errors of kind `usage`: no such trial, it does not run, or its step does not rise (a repetition of the
  /// last report, with the same values, is accepted).
  Decision report(TrialId trial, Metrics metrics, std::optional<int> step = std::nullopt);
  /// The same; the report may have attributes.
  Decision report(TrialId trial, Report report);

  /// Ends a trial with its result, as its last report. Errors as of report(), and `usage` if an objective has no value.
  void tell(TrialId trial, Metrics metrics);
  void tell(TrialId trial, Report result);
  void tell(TrialId trial, double value);
  void tell(TrialId trial, const std::vector<double>& values);
  /// Ends a trial that failed. As long as options.max_retries allows, ask() hands it out again.
  void tell_failed(TrialId trial, std::string why = "told as failed");

  /// Records attributes of a trial that was asked for, even if it has ended, or of the whole study. Errors of kind
  /// `usage`: no such trial, an invalid name, or more than max_attributes.
  void note(TrialId trial, const Attributes& attributes);
  void note(const Attributes& attributes);

  /// Sets a function to call when the user asks the whole study to end. It is called on a thread of the study.
  void on_leave(std::function<void()> leave);

  /// Throws an Error of kind `io` if results cannot be recorded any more: the disk has failed, or the folder is gone.
  void require_sound();

  /// The results so far, including everything told.
  Results results();
  std::string objective() const;
  const std::vector<Objective>& objectives() const;
  const std::filesystem::path& directory() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// A Study for the user's own configuration type.
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
  Decision report(const Trial& trial, Report report) { return study_.report(trial.id, std::move(report)); }
  void tell(const Trial& trial, double value) { study_.tell(trial.id, value); }
  void tell(const Trial& trial, Metrics metrics) { study_.tell(trial.id, std::move(metrics)); }
  void tell(const Trial& trial, Report result) { study_.tell(trial.id, std::move(result)); }
  void tell_failed(const Trial& trial, std::string why = "told as failed") {
    study_.tell_failed(trial.id, std::move(why));
  }
  void note(const Trial& trial, const Attributes& attributes) { study_.note(trial.id, attributes); }
  void note(const Attributes& attributes) { study_.note(attributes); }
  void on_leave(std::function<void()> leave) { study_.on_leave(std::move(leave)); }
  bool exhausted() const { return study_.exhausted(); }
  std::vector<TrialId> out() const { return study_.out(); }
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

}  // namespace hypertune::inline v0
