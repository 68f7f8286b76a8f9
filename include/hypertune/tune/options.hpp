// Options: everything about an experiment except the search space and the trainable.
#pragma once

#include <hypertune/checkpoint/policy.hpp>
#include <hypertune/detail/old_name.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/detail/default_searcher.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/show/detail/dashboard_start.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/attributes.hpp>
#include <hypertune/trial/detail/log_limit.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/tune/detail/runtime_hooks.hpp>
#include <hypertune/tune/detail/setting.hpp>
#include <hypertune/tune/policies.hpp>
#include <hypertune/tune/stop.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
// The defaults of Options, so that not each file compiles how they are held.
AnyScheduler default_scheduler();
AnyExecutor default_executor();
}  // namespace detail

/// What the user sees while the experiment runs.
enum class Display : std::uint8_t {
  automatic,  ///< a live table on a terminal, plain lines elsewhere
  plain,      ///< plain lines
  /// No progress, and no lines that only explain: what a searcher starts with, which folder is resumed, that the
  /// searcher is waited for, what executors that request workers say before and after the run. Warnings and other
  /// notices are still printed to the standard error.
  quiet,
};

/// Meant for designated initialisers; every default is reasonable. Options that are invalid or contradict each other
/// are an Error of kind `usage` when the run begins, before anything is recorded. docs/resume.md says what a change of
/// each option does at a resumption; a Setting that is not given is then taken from the record.
struct Options {
  Setting<std::string> name = Setting<std::string>::unset("experiment");  ///< without `output` also that of its folder
  /// the metric to tune; a plain number that a trial returns is the value of this metric
  Setting<std::string> metric = Setting<std::string>::unset("value");
  Setting<Mode> mode = Setting<Mode>::unset(Mode::minimize);
  std::vector<Objective> objectives = {};  ///< several objectives, in place of metric and mode

  /// Bounds on metrics that trials report, which are unknown before a trial has run: `{ht::at_most("latency_ms", 5),
  /// ht::at_least("recall", 0.9)}`. Trials that violate one still run, count as samples, and are learnt from; the best
  /// trial is one that satisfies all of them, if there is one. (What is known beforehand is a constraint of the space.)
  std::vector<MetricBound> constraints = {};

  /// trials to run (times the grid's size); 0: until the searcher is exhausted (a grid)
  Setting<std::int64_t> samples = Setting<std::int64_t>::unset(0);
  AnySearcher search = default_searcher();  ///< proposes configurations; by default Auto, which chooses an algorithm
  AnyScheduler schedule = detail::default_scheduler();  ///< by default Fifo, which lets every trial end by itself
  // Not `= {}`: with optimisation, g++ 12 would warn that its members are uninitialised.
  Resources resources = Resources();                           ///< of each trial
  std::function<Resources(const Params&)> resources_for = {};  ///< … or as a function of its parameters
  /// of each trial, `{4}` or `{.min = 2, .max = 8}`; each worker has `resources`. More than one needs an executor that
  /// supports it: docs/training-cpp.md
  Workers workers = {};
  GroupOptions group = {};  ///< how the workers of a trial find each other
  /// For trials whose number of workers may change: the number of workers that a trial is to have; 0: as many as there
  /// is room for. Called when the trial starts, after each of its reports, and when more room has become free; one call
  /// at a time, on the thread that makes the decision (not always the same one). `hypertune resize` takes precedence
  /// over it, and it takes precedence over Context::request_workers(). Example:
  /// `[](const ht::RunningGroup& g) { return 2 << g.steps / 30; }`.
  std::function<int(const RunningGroup&)> resize = {};
  int concurrency = 0;  ///< concurrent trials; 0: as many as there is room for

  /// how often a trial is tried again, from its last checkpoint; preemptions do not count
  int max_retries = 0;
  detail::OldName<int> max_failures = {};  ///< now max_retries
  int max_failed_trials = 0;  ///< the experiment ends when more trials than this have failed for good; 0: no limit
  /// seconds without a report or Context::alive() (in a Study: without any call about it) until a trial counts as hung;
  /// 0: never
  Seconds hang_timeout = 0;
  detail::OldName<Seconds> hang_limit = {};  ///< now hang_timeout

  std::uint64_t log_limit = default_log_limit;  ///< bytes kept of each trial's log (start and end); 0: all

  StopCondition stop = {};
  CheckpointPolicy checkpoint = {};
  AnyExecutor executor = detail::default_executor();  ///< by default threads()

  std::vector<Params> start_with = {};  ///< configurations to try first
  std::vector<KnownResult> known = {};  ///< configurations whose result is known
  Setting<std::uint64_t> seed = Setting<std::uint64_t>::unset(0);
  bool ordered = false;  ///< take reports in the order of step and trial: reproducible, a little slower
  /// with ordered: seconds without a lost host after which it is given up, if its trials find no room elsewhere
  Seconds ordered_timeout = 600;
  detail::OldName<Seconds> ordered_patience = {};  ///< now ordered_timeout

  std::filesystem::path output = {};  ///< the experiment's folder; empty: runs/<name>, or runs/<name>-2, …
  bool resume = false;                ///< go on with the experiment in `output`, or begin it if there is none
  bool retry_failed = false;          ///< with resume: trials that have failed are tried again, as if they had not

  /// attributes to record with the experiment: `{{"note", "with the old data"}, {"dataset", "v3"}}`; see attributes.hpp
  Attributes attributes = {};
  /// A description of what the trials run. Recorded, and shown where experiments are compared.
  std::string command = {};

  Display display = Display::automatic;
  std::vector<AnyCallback> callbacks = {};
  /// Serves the experiment's page for a browser while it runs: `ht::serve_dashboard()` or `ht::serve_dashboard({.port =
  /// 8080})`, of <hypertune/show/dashboard.hpp> (link hypertune::dashboard): docs/dashboard.md
  DashboardStart dashboard = {};
  bool progress_csv = false;  ///< keep trials/<id>/progress.csv: a folder and a file per trial (not of simulated ones)
  /// The first Ctrl-C (also SIGTERM, and SIGHUP unless it is ignored) saves everything and ends the run; the second
  /// ends it at once. Further signals act as they would without hypertune. On by default in programs with a Runtime,
  /// whose main() is written for hypertune; otherwise off: then signals do what the program defines, and a killed
  /// experiment can be resumed.
  bool handle_signals = detail::signals_by_default();
  /// For a program that does nothing but this experiment: if a trial never returns, so that tune() cannot return
  /// either, the process exits with status 130 five seconds after the second Ctrl-C, or at the third. The record is
  /// kept.
  bool exit_if_stuck = false;
  Seconds interrupt_grace = 10;  ///< seconds that trials have to report after the first Ctrl-C

  /// Options by the names of earlier versions, under their new ones.
  void take_old_names() {
    max_failures.give_to(max_retries);
    hang_limit.give_to(hang_timeout);
    ordered_patience.give_to(ordered_timeout);
  }
};

/// The objectives of `options`: those given, else metric and mode. Throws an Error of kind `usage` if there is none.
std::vector<Objective> objectives_of(const Options& options);

}  // namespace hypertune::inline v0
