// Options: everything about an experiment that is not the space or the trainable.
#pragma once

#include <hypertune/checkpoint/policy.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/default_searcher.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/show/dashboard_start.hpp>
#include <hypertune/tune/policies.hpp>
#include <hypertune/tune/runtime_hooks.hpp>
#include <hypertune/tune/setting.hpp>
#include <hypertune/tune/stop.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// What the user sees while the experiment runs.
enum class Display : std::uint8_t {
  automatic,  ///< a live table on a terminal, plain lines elsewhere
  plain,      ///< plain lines
  quiet,      ///< nothing
};

/// Meant for designated initialisers; every default is a sound choice. What docs/resume.md says of a change of each at
/// a resumption holds for programs, too; a Setting that is not given is taken from the record then.
struct Options {
  Setting<std::string> name = Setting<std::string>::unset("experiment");
  /// the metric to tune; a bare number that a trial returns becomes it
  Setting<std::string> metric = Setting<std::string>::unset("value");
  Setting<Mode> mode = Setting<Mode>::unset(Mode::minimize);
  std::vector<Objective> objectives = {};  ///< several objectives, in place of metric and mode

  /// Bounds on metrics that a trial reports, which are not known before it has run:
  /// `{ht::at_most("latency_ms", 5), ht::at_least("recall", 0.9)}`. Trials that break one still run, count and teach;
  /// the best trial keeps them all, if any does. (What is known beforehand is a constraint of the space.)
  std::vector<MetricBound> constraints = {};

  /// trials to run (times the grid's size); 0: what the searcher has (a grid)
  Setting<std::int64_t> samples = Setting<std::int64_t>::unset(0);
  AnySearcher search = default_searcher();  ///< who proposes configurations: Auto, which chooses what fits
  AnyScheduler schedule = Fifo{};
  // Not `= {}`: g++ 12 would take its parts for uninitialised in every program that is optimised.
  Resources resources = Resources();                           ///< of each trial
  std::function<Resources(const Params&)> resources_for = {};  ///< … or as a function of its parameters
  /// of each trial, `{4}` or `{.min = 2, .max = 8}`, each with these resources; more than one only for executors that
  /// can: docs/training-cpp.md
  Workers workers = {};
  GroupOptions group = {};  ///< how they find each other
  /// Of trials whose number of workers may change: how many one is to have, asked when it starts, after each of its
  /// reports, and when there is more room than before, on the driver's thread; 0: as many as there is room for.
  /// `hypertune resize` comes before it, and it before Context::want_workers(). A plan: `[](const ht::RunningGroup& g)
  /// { return 2 << g.steps / 30; }`.
  std::function<int(const RunningGroup&)> resize = {};
  int concurrency = 0;  ///< trials at once; 0: as many as there is room for

  int max_failures = 0;       ///< how often a trial is tried again, from its last checkpoint
  int max_failed_trials = 0;  ///< the experiment fails when more trials than this failed; 0: no limit
  /// seconds without a report or Context::alive() (of a Study: without a word of it) until a trial counts as hung
  Seconds hang_limit = 0;

  std::uint64_t log_limit = default_log_limit;  ///< bytes of each trial's log that are kept (start and end); 0: all

  StopCondition stop = {};
  CheckpointPolicy checkpoint = {};
  AnyExecutor executor = threads();

  std::vector<Params> start_with = {};  ///< configurations to try first
  std::vector<KnownResult> known = {};  ///< configurations whose result is known
  Setting<std::uint64_t> seed = Setting<std::uint64_t>::unset(0);
  bool ordered = false;  ///< take reports in the order of step and trial: reproducible, a little slower
  /// … and where a lost host leaves its trials no room elsewhere, wait for it, at most so many seconds
  Seconds ordered_patience = 600;

  std::filesystem::path output = {};  ///< the experiment's folder; empty: runs/<name>, or runs/<name>-2, …
  bool resume = false;                ///< go on with the experiment in `output`; begin it where there is none
  bool retry_failed = false;          ///< with resume: trials that have failed are tried again, as if they had not

  /// what is noted of the experiment: `{{"note", "with the old data"}, {"dataset", "v3"}}`; see attributes.hpp
  Attributes attributes = {};
  /// What trials run, in words, where that may differ between experiments: recorded, and shown where they are compared.
  std::string command = {};

  Display display = Display::automatic;
  std::vector<AnyCallback> callbacks = {};
  /// The experiment's page in a browser while it runs, `ht::serve_dashboard()` or `ht::serve_dashboard({.port =
  /// 8080})`, of <hypertune/show/dashboard.hpp> (link hypertune::dashboard): docs/dashboard.md
  DashboardStart dashboard = {};
  bool progress_csv = false;  ///< keep trials/<id>/progress.csv: a folder and a file per trial (not of simulated ones)
  /// Ctrl-C (also SIGTERM, and SIGHUP unless it is ignored) once: save all and leave; twice: leave now. The third is
  /// the program's own again: it does what it does without hypertune. On where a Runtime lives, as its main() is
  /// written for hypertune; off elsewhere: then a signal does what the program says, and a killed experiment can be
  /// resumed.
  bool handle_signals = detail::signals_by_default();
  /// Of a program that is nothing but this experiment: where a trial never returns, so that tune() cannot either, it
  /// ends with 130 five seconds after the second Ctrl-C, or at the third. What was recorded is saved.
  bool exit_if_stuck = false;
  Seconds interrupt_grace = 10;  ///< seconds that a trial has to report after the first Ctrl-C
};

/// The objectives that `options` names.
inline std::vector<Objective> objectives_of(const Options& options) {
  if (!options.objectives.empty()) return options.objectives;
  if (options.metric->empty()) fail(Errc::usage, "no metric to tune: set .metric (or .objectives)");
  return {{options.metric, options.mode}};
}

}  // namespace hypertune::inline v0
