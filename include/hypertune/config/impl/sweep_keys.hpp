// The keys of a sweep's file.
#pragma once

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/sweep_keys.hpp>
#include <hypertune/trial/detail/log_limit.hpp>
#include <hypertune/tune/options.hpp>

#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

Shape mode_shape() { return shape::word({"min", "max"}, {"minimize", "maximize"}); }

const Keys& trial_file_keys() {
  static const Keys keys{
      key("from", shape::text(), "the template: a file of this machine. Hosts get its text with the sweep"),
      key("text", shape::text(), "the template itself"),
      key("placeholders", shape::text(), "how a placeholder is written, for one called `name`: `<<name>>`, `${name}`",
          "\"@name@\"")};
  return keys;
}

const Keys& metric_expression_keys() {
  static const Keys keys{
      required(key("match", shape::text(), "the regular expression")),
      key("unit", shape::word({"percent", "seconds", "bytes", "count"}),
          "what the value is counted in: `91.5%` is 91.5 percent, `3m12s` 192 seconds, `1.5MiB` 1572864 bytes, and "
          "`12.3k` a count of 12300")};
  return keys;
}

const Keys& step_expression_keys() {
  static const Keys keys{
      required(key("match", shape::text(), "the regular expression")),
      key("first", shape::whole(between(0, 1)), "what the program calls its first step, 0 or 1"),
      key("counts", shape::word({"trial", "attempt"}),
          "what the program counts the steps of: with `attempt`, it begins anew when it goes on from a "
          "checkpoint (XGBoost, CatBoost)")};
  return keys;
}

const Keys& trial_keys() {
  static const Shape measured = shape::word({"duration", "cpu_time", "peak_memory"});
  static const Shape exit_code = shape::whole(at_least(0).at_most(255));
  static const Keys keys{
      key("command", shape::either({shape::text(), shape::list(shape::texts())}),
          "the program and its arguments, with placeholders. A list within it is of words that are there together or "
          "not "
          "at all"),
      key("binary", shape::text(), "a program without arguments: it reads `HYPERTUNE_PARAMS`"),
      key("metrics", shape::entries(shape::either({shape::text(), shape::map(metric_expression_keys())})),
          "by name, a regular expression with one group, for trainers that print no JSON; or `{match: …, unit: …}`"),
      key("step", shape::either({shape::text(), shape::map(step_expression_keys())}),
          "with `metrics`: a regular expression that finds the step, in the line of the metrics or before; or `{match: "
          "…, first: …, counts: …}`"),
      key("measure",
          shape::either({measured, shape::filled(shape::list(measured)), shape::filled(shape::entries(measured))}),
          "what hypertune measures of the trainer, as metrics: `duration`, `cpu_time` (seconds) and `peak_memory` "
          "(bytes); `{wall: duration}` takes another name"),
      key("files", shape::entries(shape::either({shape::text(), shape::map(trial_file_keys())})),
          "files in the trial's folder that are made from templates with its parameters: `{in.lammps: template.in}`"),
      key("environment", shape::entries(shape::scalar()), "added to the environment of the trainer"),
      key("stop_grace", shape::duration(), "time from SIGTERM to SIGKILL when a trial is stopped", "10s"),
      key("output", shape::word({"pipe", "line"}),
          "`line`: the trainer prints to a pseudo-terminal, so that C, C++, Python and others print line by line and "
          "not "
          "all at their end",
          "pipe"),
      key("success", shape::either({exit_code, shape::filled(shape::list(exit_code))}),
          "the exit codes that mean success: `[0, 10, 20]` for SAT solvers", "0"),
      key("report", shape::word({"each", "last", "best"}),
          "which reports of the trainer count: `last` and `best` pass on one of them, when it has ended", "each"),
      key("repeat", shape::either({shape::whole(at_least(1)), shape::map(repeat_keys())}),
          "the trainer runs several times in each trial, whose value is the median of theirs, or what `use` says "
          "(with `search.repeat` each run is a trial of its own)",
          "1")};
  return keys;
}

const Keys& repeat_keys() {
  static const Keys keys{required(key("times", shape::whole(at_least(1).at_most(1000)), "how often the trainer runs")),
                         key("use", shape::word({"median", "mean", "min", "max", "worst"}),
                             "which of the runs' values is the trial's; `worst`: by the metric's mode", "median")};
  return keys;
}

Keys resources_keys() { return options_of(Resources()); }

const Keys& workers_keys() {
  static const Keys keys = joined(
      options_of(Workers{}),
      Keys{key(
          "plan", shape::entries(shape::whole(at_least(1))),
          "the number of workers, by the steps done, within `min` and `max` and as far as there is room: `{0: 2, 30: "
          "4, 60: 8}`")});
  return keys;
}

const Keys& group_keys() {
  static const Keys keys{key("network", shape::text(network_pattern),
                             "`10.1.0.0/16`: the addresses by which hosts reach each other. Needed where a trial has "
                             "workers on several hosts")};
  return keys;
}

const Keys& metric_stop_keys() {
  static const Keys keys{key("at_least", shape::number(), "a report has this value or more"),
                         key("at_most", shape::number(), "a report has this value or less")};
  return keys;
}
Keys plateau_keys() { return options_of(Plateau{}); }
Keys expected_gain_keys() { return options_of(ExpectedGain{}); }
const Keys& stop_keys() {
  static const Keys keys{
      key("steps", shape::whole(at_least(1)),
          "no trial trains longer than this (a schedule's `max_steps` makes it *completed*, this "
          "*stopped*)"),
      key("training_iteration", shape::whole(at_least(1)), "the same as `steps`, by Ray's name"),
      key("time", shape::duration(), "a limit on time; earlier sessions count, the time between them does not"),
      key("total_steps", shape::whole(at_least(1)), "a limit on the steps of all trials together"),
      key("failed_trials", shape::whole(at_least(1)), "after this many failed trials something is taken to be broken"),
      key("plateau", shape::map(plateau_keys()), "the best trials hardly differ any more"),
      key("expected_gain", shape::map(expected_gain_keys()), "another trial is not expected to pay")};
  return keys;
}
const Keys& constraint_keys() {
  static const Keys keys{key("at_most", shape::number(), "an upper bound"),
                         key("at_least", shape::number(), "a lower bound")};
  return keys;
}

Keys checkpoint_keys() { return options_of(CheckpointPolicy{}); }

const Keys& log_rule_keys() {
  static const Shape what = shape::word({"exclude_host", "no_retry"});
  static const Keys keys{
      required(key("match", shape::text(), "searched for anywhere in a line; it counts only if that attempt fails")),
      required(key("do", shape::either({what, shape::list(what)}),
                   "`exclude_host`: use that host no more; `no_retry`: do not try this trial again"))};
  return keys;
}
const Keys& failures_keys() {
  static const Keys keys{
      key("max_retries", shape::whole(at_least(0)),
          "how often a trial is tried again, from its last checkpoint. Hosts that go away do not count, nor does one "
          "of several workers that is lost, nor does a failure that may be its host's doing: the trial is tried on "
          "another one first",
          "0"),
      key("max_trials", shape::whole(at_least(0)),
          "the experiment ends when more trials than this have failed; the command exits with 1"),
      key("log", shape::list(shape::map(log_rule_keys())), "rules on lines of the trainer's output")};
  return keys;
}

const Keys& known_keys() {
  static const Keys keys{
      required(key("params", shape::entries(shape::scalar()), "a configuration of the space")),
      required(key("metrics", shape::entries(shape::number()), "its result: every metric that is tuned, and others")),
      key("steps", shape::whole(at_least(1)), "steps of training behind the result", "1")};
  return keys;
}

/// A file, or a list of files and of values that are written out.
inline Shape given_shape(Shape item) {
  return shape::either({shape::text(), shape::list(shape::either({shape::text(), std::move(item)}))});
}

/// An algorithm: its name alone, or a map with `type` and the options of that algorithm.
inline Shape algorithm_shape(const std::vector<AlgorithmInfo>& known, std::string_view common, bool search) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Keys>> variants;
  const Keys* shared = nullptr;
  for (const auto& [type, options] : known)
    if (type == common) shared = &options;
  for (const auto& [type, options] : known) {
    if (type == common) continue;
    names.emplace_back(type);
    Keys keys{required(key("type", shape::word({std::string(type)}),
                           search ? "how configurations are chosen" : "how long each trial trains"))};
    keys.insert(keys.end(), options.begin(), options.end());
    if (shared != nullptr) keys.insert(keys.end(), shared->begin(), shared->end());
    for (auto& one : keys) one.required = one.required || (type == "replay" && one.name == "from");
    variants.emplace_back(type, std::move(keys));
  }
  return shape::either({shape::word(std::move(names)), shape::variants(std::move(variants), true)});
}

const Keys& prometheus_keys() {
  static const Keys keys{required(key("type", shape::word({"prometheus"}), "`prometheus`")),
                         required(key("file", shape::text(),
                                      "the file, in a folder that exists; the collector reads those named `….prom`"))};
  return keys;
}
const Keys& mlflow_keys() {
  static const Keys keys{
      required(key("type", shape::word({"mlflow"}), "`mlflow`")),
      required(key("uri", shape::text(), "the address of the server: `http://localhost:5000`, `https://…`")),
      key("experiment", shape::text(), "MLflow's experiment; made where there is none"),
      key("flush_grace", shape::duration(), "how long the end of the run waits for data that is not sent yet", "10s")};
  return keys;
}

Keys sweep_keys(bool study) {
  const Shape logger =
      shape::either({shape::word({"tensorboard", "jsonl", "csv"}),
                     shape::variants({{"prometheus", prometheus_keys()}, {"mlflow", mlflow_keys()}}, true)});
  Keys conditions = stop_keys();
  for (auto& one : conditions)  // a metric of such a name has a map
    if (one.shape.kind != Shape::Kind::map) one.shape = shape::either({one.shape, shape::map(metric_stop_keys())});
  Shape stop = shape::map(std::move(conditions));
  stop.parts = {shape::either({shape::number(), shape::map(metric_stop_keys())})};
  Keys keys{
      key("name", shape::text("^(?!\\.{1,2}$)[^/]+$"), "the name of the experiment, and of its folder below `runs/`"),
      required(key("space", {.kind = Shape::Kind::space}, "what may vary")),
      key("metric", shape::text(), "the metric that is tuned, as the trainer reports it"),
      key("mode", mode_shape(), "whether smaller or larger values are better (also `minimize`, `maximize`)"),
      key("objectives", shape::filled(shape::entries(mode_shape())),
          "several metrics in place of `metric` and `mode`: `{loss: min, size: min}`"),
      key("samples", shape::whole(at_least(1)),
          "trials to run; with a grid in the space: for each of its combinations. May be left out where the searcher "
          "comes to an end or `stop` is given"),
      key("seed", shape::whole(at_least(0)), "the same seed draws the same configurations", "0"),
      key("search", algorithm_shape(known_searchers(), "search", true), "how configurations are chosen: searchers.md",
          "auto"),
      key("schedule", algorithm_shape(known_schedulers(), "", false), "how long each trial trains: schedulers.md",
          "fifo"),
      key("resources", shape::map(resources_keys()), "what each trial takes", "{cpus: 1}"),
      key("workers", shape::either({shape::whole(at_least(1)), shape::map(workers_keys())}),
          "how many workers train each trial together. `resources` are those of each", "1"),
      key("group", shape::map(group_keys()), "how the workers of a trial find each other"),
      key("concurrency", shape::whole(at_least(1)),
          "trials at once. With it, and without `resources.cpus`, a trial takes no cpus: just that many run"),
      key("stop", std::move(stop), "when a trial, or the whole, has done enough: stopping.md"),
      key("constraints", shape::entries(shape::filled(shape::map(constraint_keys()))),
          "bounds on metrics that a good result keeps: stopping.md"),
      key("checkpoint", shape::map(checkpoint_keys()), "when checkpoints are asked for, and how many are kept",
          "{every: 0, keep: 2}"),
      key("failures", shape::map(failures_keys()), "how failed trials are handled", "{max_retries: 0}"),
      key("hang_timeout", shape::duration(),
          "a trial that prints nothing for this long has failed, as hung; in a study, a trial that was given out and "
          "has had no request since"),
      key("log_limit", shape::size(at_least(least_log_limit).or_zero()),
          "of each trial's log: its beginning and its end are kept, with a line that says how much is left out; 0: all",
          "16MiB"),
      key("loggers", shape::either({logger, shape::list(logger)}),
          "further files written while it runs: `[tensorboard, jsonl]` (`csv` is always; of a study, if named), and "
          "the trackers that are informed"),
      key("attributes", shape::entries(shape::scalar()),
          "notes on the experiment: `{dataset: v3, note: with the old labels}`. Texts, numbers, true and "
          "false; shown by `status`, exported; no decision depends on them"),
      key("interrupt_grace", shape::duration(), "time that each trial has to report after a first Ctrl-C", "10s"),
      key("executor", executor_shape(), "where trials run", "local"),
      key("ordered", shape::boolean(),
          "decisions are made in the order of steps and trials: the same every time, a little slower", "false"),
      key("ordered_timeout", shape::duration(),
          "with `ordered`: how long trials wait for a lost host if there is no room elsewhere; then it is given up",
          "600s"),
      key("start_with", given_shape(shape::entries(shape::scalar())),
          "configurations to try first: `[{lr: 0.1, power: 2}]`, or files of them. They count as samples; if there are "
          "more of them than `samples`, their number counts"),
      key("known", given_shape(shape::map(known_keys())), "configurations whose results are known, or files of them"),
      key("output", shape::text(),
          "the experiment's folder. By default, where there is one already, `runs/<name>-2`, …")};
  if (!study) {
    Shape trial = shape::map(trial_keys());
    trial.one_of = {{"command"}, {"binary"}};
    keys.insert(keys.begin() + 1,
                required(key("trial", std::move(trial), "how to run one trial. Not in a study's file")));
  }
  return keys;
}

}  // namespace detail

Shape sweep_shape(bool study) {
  Shape shape = shape::map(detail::sweep_keys(study));
  shape.one_of = {{"metric", "mode"}, {"objectives"}};
  return shape;
}

}  // namespace hypertune::inline v0
