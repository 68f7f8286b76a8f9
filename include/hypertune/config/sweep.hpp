// sweep.yaml: a whole experiment as a file.
#pragma once

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/kubernetes.hpp>
#include <hypertune/config/slurm.hpp>
#include <hypertune/config/space.hpp>
#include <hypertune/config/ssh.hpp>
#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/jsonl_logger.hpp>
#include <hypertune/record/prometheus_logger.hpp>
#include <hypertune/record/tensorboard_logger.hpp>
#include <hypertune/trial/group_address.hpp>
#include <hypertune/trial/metric_name.hpp>
#include <hypertune/tune/options.hpp>

#include <charconv>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

using words = std::vector<std::string_view>;

inline Mode mode_from_yaml(const Node& node) {
  const auto text = node.as<std::string>();
  if (text == "max" || text == "maximize") return Mode::maximize;
  if (text == "min" || text == "minimize") return Mode::minimize;
  node.fail("'{}' must be min or max, not '{}'", node.path(), text);
}

inline int at_least(const Node& node, int least) {
  const int value = node.as<int>();
  if (value < least) node.fail("'{}' must be {} or more, not {}", node.path(), least, value);
  return value;
}

/// A metric that a command reports. `node`: where it is named.
inline void command_metric(const Node& node, const std::string& name) {
  if (const auto why = reserved_in_report_lines(name); !why.empty()) node.fail("{}", why);
}

inline Resources resources_from_yaml(const Node& node) {
  Resources resources;
  node.only({"cpus", "gpus", "memory", "custom"});
  for (const auto& [key, value] : node.entries()) {
    if (key == "cpus")
      resources.cpus = amount(value);
    else if (key == "gpus")
      resources.gpus = amount(value);
    else if (key == "memory")
      resources.memory = value.bytes();
    else
      for (const auto& [name, custom] : value.entries()) resources.custom[name] = amount(custom);
  }
  return resources;
}

/// workers: 3, or {min: 2, max: 4, placement: spread}
inline Workers workers_from_yaml(const Node& node) {
  static const words strategies{"pack", "spread", "strict_pack", "strict_spread"};
  if (!node.is_map()) return {at_least(node, 1)};
  node.only({"min", "max", "placement", "plan"});
  if (!node.has("min") && !node.has("max"))
    node.fail("'{}' needs a number of workers: write {{min: 2, max: 4}}, or just 4", node.path());
  Workers workers;
  if (node.has("min")) workers.min = workers.max = at_least(node["min"], 1);
  if (node.has("max")) workers.max = at_least(node["max"], 1);
  if (workers.max < workers.min)
    node["max"].fail("'{}' must be '{}' or more, which is {}, not {}", node["max"].path(), node["min"].path(),
                     workers.min, workers.max);
  if (const auto placement = node.find("placement")) {
    const auto name = placement->as<std::string>();
    const auto found = std::find(strategies.begin(), strategies.end(), name);
    if (found == strategies.end())
      placement->fail("'{}' must be pack, spread, strict_pack or strict_spread, not '{}'{}", placement->path(), name,
                      suggestion(name, strategies));
    workers.strategy = static_cast<Strategy>(found - strategies.begin());
  }
  return workers;
}

/// workers: {…, plan: {0: 2, 30: 4, 60: 8}}: from so many steps on so many workers.
inline std::function<int(const RunningGroup&)> worker_plan_from_yaml(const Node& node, const Workers& workers) {
  if (!node.is_map()) node.fail("'{}' must map steps to workers: {{0: 2, 30: 4}}", node.path());
  std::map<int, int> plan;
  for (const auto& [key, value] : node.entries()) {
    int step = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), step);
    if (error != std::errc() || end != key.data() + key.size() || step < 0)
      value.fail("'{}': '{}' is no number of steps: {{0: 2, 30: 4}}", node.path(), key);
    const int wanted = at_least(value, workers.min);
    if (wanted > workers.max)
      value.fail("'{}' must be {} or less, as 'workers.max' is, not {}", value.path(), workers.max, wanted);
    plan[step] = wanted;
  }
  return [plan = std::move(plan)](const RunningGroup& group) {
    const auto next = plan.upper_bound(group.steps);
    return next == plan.begin() ? 0 : std::prev(next)->second;
  };
}

/// group: {network: 10.1.0.0/16}
inline GroupOptions group_from_yaml(const Node& node) {
  GroupOptions group;
  node.only({"network"});
  if (const auto network = node.find("network")) {
    group.network = network->as<std::string>();
    if (!parse_network(group.network))
      network->fail("'{}' must be a network such as 10.1.0.0/16, not '{}'", network->path(), group.network);
  }
  return group;
}

inline StopCondition stop_from_yaml(const Node& node, const std::vector<Objective>& objectives) {
  StopCondition stop;
  const words own{"steps", "training_iteration", "time", "total_steps", "failed_trials", "plateau", "expected_gain"};
  if (const auto* watch = key_watch()) watch->known(node.path(), own);
  for (const auto& [key, value] : node.entries()) {
    const auto add = [&](StopCondition condition) { stop = stop | condition; };
    checked(value, [&, &key = key, &value = value] {
      if (key == "steps" || key == "training_iteration")
        add(steps(value.as<std::int64_t>()));
      else if (key == "time")
        add(within(value.duration()));
      else if (key == "total_steps")
        add(total_steps(value.as<std::int64_t>()));
      else if (key == "failed_trials")
        add(failed_trials(value.as<std::int64_t>()));
      else if (key == "plateau") {
        value.only({"tolerance", "last", "patience", "metric"});
        add(plateau({.tolerance = value.get("tolerance", 1e-3),
                     .last = value.get("last", 10),
                     .patience = value.get("patience", 0),
                     .metric = value.get("metric", std::string())}));
      } else if (key == "expected_gain") {
        value.only({"threshold", "last", "metric"});
        add(expected_gain({.threshold = value.get("threshold", 1e-4),
                           .last = value.get("last", 20),
                           .metric = value.get("metric", std::string())}));
      } else if (std::any_of(objectives.begin(), objectives.end(), [&](const auto& o) { return o.metric == key; })) {
        add(until(key, value.as<double>()));
      } else if (value.is_map() && (value.has("at_least") || value.has("at_most"))) {
        value.only({"at_least", "at_most"});
        if (value.has("at_least")) add(hypertune::at_least(key, value["at_least"].as<double>()));
        if (value.has("at_most")) add(at_most(key, value["at_most"].as<double>()));
      } else {
        auto known = own;
        for (const auto& objective : objectives) known.push_back(objective.metric);
        if (value.is_scalar())
          value.fail(
              "unknown stop condition '{}'{}; for a metric that is not tuned write {}: {{at_least: …}} or {{at_most: "
              "…}}",
              key, suggestion(key, known), key);
        node.only(known);
      }
      return 0;
    });
  }
  return stop;
}

/// constraints: {latency_ms: {at_most: 5}, recall: {at_least: 0.9}}
inline std::vector<MetricBound> constraints_from_yaml(const Node& node) {
  std::vector<MetricBound> constraints;
  if (!node.is_map())
    node.fail(
        "'constraints' must be bounds on metrics, such as {{latency_ms: {{at_most: 5}}}}, not {}; those between "
        "parameters stand under 'space'",
        node.kind_text());
  for (const auto& [metric, bounds] : node.entries()) {
    if (!bounds.is_map() || bounds.size() == 0)
      bounds.fail("'constraints.{}' must be {{at_most: …}} or {{at_least: …}}, not {}", metric, bounds.kind_text());
    bounds.only({"at_most", "at_least"});
    for (const auto& [side, value] : bounds.entries())
      checked(value, [&, &metric = metric, &side = side, &value = value] {
        const double bound = value.as<double>();
        constraints.push_back(side == "at_most" ? at_most(metric, bound) : hypertune::at_least(metric, bound));
        return 0;
      });
  }
  return constraints;
}

inline CheckpointPolicy checkpoint_from_yaml(const Node& node) {
  node.only({"every", "keep", "keep_best", "max_bytes", "at_end"});
  CheckpointPolicy policy;
  if (node.has("every")) policy.every = at_least(node["every"], 0);
  if (node.has("keep")) policy.keep = at_least(node["keep"], 0);
  if (node.has("keep_best")) policy.keep_best = at_least(node["keep_best"], 0);
  if (node.has("max_bytes")) policy.max_bytes = node["max_bytes"].bytes();
  policy.at_end = node.get("at_end", policy.at_end);
  return policy;
}

inline std::vector<LogRuleSpec> log_rules_from_yaml(const Node& node) {
  std::vector<LogRuleSpec> rules;
  for (const auto& item : node.items()) {
    item.only({"match", "do"});
    LogRuleSpec rule{.match = item["match"].as<std::string>(), .where = item["match"].where()};
    for (const auto& what : item["do"].texts()) {
      if (what == "exclude_host")
        rule.exclude_host = true;
      else if (what == "no_retry")
        rule.no_retry = true;
      else
        item["do"].fail("'do' must be exclude_host or no_retry, not '{}'{}", what,
                        suggestion(what, words({"exclude_host", "no_retry"})));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

inline TrialSpec trial_from_yaml(const Node& node) {
  node.only({"command", "binary", "metrics", "environment", "grace"});
  TrialSpec trial;
  if (node.has("command") == node.has("binary"))
    node.fail("'trial' needs one of 'command' (a list of words) and 'binary' (a path)");
  if (node.has("command")) {
    trial.command = node["command"].texts();
    if (trial.command.empty() || trial.command.front().empty())
      node["command"].fail("'trial.command' is empty: it must name a program");
    if (node["command"].is_list())
      for (const auto& word : node["command"].items()) trial.command_places.push_back(word.where());
  } else {
    trial.command = {node["binary"].as<std::string>()};
  }
  if (const auto metrics = node.find("metrics"))
    for (const auto& [name, pattern] : metrics->entries()) {
      command_metric(pattern, name);
      trial.metrics[name] = pattern.as<std::string>();
      trial.metric_places[name] = pattern.where();
    }
  if (const auto environment = node.find("environment"))
    for (const auto& [name, value] : environment->entries()) trial.environment[name] = to_string(value.scalar());
  if (const auto grace = node.find("grace")) trial.grace = grace->duration();
  return trial;
}

/// Where expressions read the output, each metric that something hangs on needs one: it can arrive in no other way that
/// belongs to the same step. `node`: where `metric` is named.
inline void require_expression(const Node& node, const TrialSpec& trial, const std::string& metric) {
  if (trial.metrics.empty() || trial.metrics.contains(metric)) return;
  words known;
  for (const auto& [name, pattern] : trial.metrics) known.emplace_back(name);
  node.fail("'trial.metrics' has no expression for '{}', so that it can never be reported{}", metric,
            suggestion(metric, known));
}

inline void refuse_simulated(const Node& node, const std::string& type) {
  if (type == "simulated")
    node.fail(
        "executor 'simulated' is for C++ programs, whose steps it runs one after the other in virtual time: a command "
        "takes its own time. For runs that decide the same each time write 'ordered: true'");
}

/// Those whose workers come and go with the queue of trials; false: it is none of them.
inline bool elastic_from_yaml(const Node& node, ExecutorSpec& executor) {
  if (executor.type == "slurm")
    executor.slurm = slurm_from_yaml(node);
  else if (executor.type == "kubernetes")
    executor.kubernetes = kubernetes_from_yaml(node);
  else
    return false;
  return true;
}

inline ExecutorSpec executor_from_yaml(const Node& node) {
  ExecutorSpec executor;
  if (!node.is_map()) {
    executor.type = node.as<std::string>();
  } else {
    executor.type = node.get("type", executor.type);
    refuse_simulated(node, executor.type);
    if (elastic_from_yaml(node, executor)) return executor;
    std::vector<std::string_view> keys{"type", "cpus", "gpus", "memory", "custom"};
    if (executor.type == "ssh")
      keys.insert(keys.end(), std::begin(ssh_keys), std::end(ssh_keys));
    else
      keys.emplace_back("workers");
    node.only(keys);
    if (const auto workers = node.find("workers")) executor.workers = to_string(workers->scalar());
    if (const auto cpus = node.find("cpus")) executor.cpus = amount(*cpus);
    if (const auto gpus = node.find("gpus")) executor.gpus = amount(*gpus);
    if (const auto memory = node.find("memory")) executor.memory = memory->bytes();
    if (const auto custom = node.find("custom"))
      for (const auto& [name, value] : custom->entries()) executor.custom[name] = amount(value);
  }
  refuse_simulated(node, executor.type);
  if (executor.type == "ssh") {
    executor.ssh = ssh_from_yaml(node);
    return executor;
  }
  if (elastic_from_yaml(node, executor)) return executor;
  if (executor.type != "local")
    node.fail("there is no executor '{}'{}", executor.type,
              suggestion(executor.type, words({"local", "ssh", "slurm", "kubernetes"})));
  if (executor.workers != "processes" && executor.workers != "threads")
    node["workers"].fail("'workers' must be processes or threads, not '{}'", executor.workers);
  return executor;
}

/// A logger that has options: {type: prometheus, file: …}, {type: mlflow, uri: …}.
inline std::string logger_with_options(const Node& item, Sweep& sweep) {
  static const words known{"prometheus", "mlflow"};
  const auto type = item.find("type");
  if (!type)
    item.fail(
        "'{}' must be a logger's name or have a type, as in 'loggers: [jsonl, {{type: prometheus, file: a.prom}}]': "
        "other loggers take no options",
        item.path());
  const auto name = type->as<std::string>();
  if (name == "prometheus") {
    item.only({"type", "file"});
    sweep.options.callbacks.emplace_back(PrometheusLogger(item["file"].as<std::string>()));
  } else if (name == "mlflow") {
    item.only({"type", "uri", "experiment", "patience"});
    MlflowOptions mlflow{.uri = item["uri"].as<std::string>(), .experiment = item.get("experiment", std::string())};
    if (const auto patience = item.find("patience")) mlflow.patience = patience->duration();
    sweep.mlflow.push_back(std::move(mlflow));
  } else {
    type->fail("there is no logger '{}' that takes options{}", name, suggestion(name, known));
  }
  return name;
}

/// loggers: [tensorboard, jsonl, csv, {type: mlflow, …}]: what else is written while it runs.
inline void loggers_from_yaml(const Node& node, bool study, Sweep& sweep) {
  static const words known{"tensorboard", "jsonl", "csv"};
  Options& options = sweep.options;
  std::vector<std::string> seen;
  for (const Node& item : node.is_list() ? node.items() : std::vector<Node>{node}) {
    const auto name = item.is_map() ? logger_with_options(item, sweep) : item.as<std::string>();
    if (!item.is_map() && (name == "prometheus" || name == "mlflow"))
      item.fail("the logger '{}' needs options: {{type: {}, {}}}", name, name,
                name == "mlflow" ? "uri: http://localhost:5000" : "file: experiment.prom");
    if (!item.is_map() && std::find(known.begin(), known.end(), name) == known.end())
      item.fail("there is no logger '{}'{}", name, suggestion(name, known));
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      item.fail("the logger '{}' is named twice: remove one of the two", name);
    if (name == "tensorboard") options.callbacks.emplace_back(TensorBoardLogger{});
    if (name == "jsonl") options.callbacks.emplace_back(JsonlLogger{});
    if (name == "csv" && study) options.callbacks.emplace_back(CsvLogger{});
    if (name == "csv" && !study) options.progress_csv = true;
    seen.push_back(name);
  }
}

inline Params params_from_yaml(const Node& node) {
  Params params;
  for (const auto& [name, value] : node.entries()) params.set(name, value.scalar());
  return params;
}

}  // namespace detail

/// Reads a sweep (or a study: the same without `trial`) and validates every key. Errors are of kind `input` and start
/// with file and line. `text_only_study`: whether `trial` must be absent.
inline Sweep sweep_from_yaml(const Node& root, bool study) {
  std::vector<std::string_view> keys{"name",        "space",           "metric",      "mode",
                                     "objectives",  "samples",         "seed",        "search",
                                     "schedule",    "resources",       "concurrency", "stop",
                                     "checkpoint",  "failures",        "executor",    "output",
                                     "constraints", "ordered",         "start_with",  "known",
                                     "hang_limit",  "interrupt_grace", "log_limit",   "ordered_patience",
                                     "loggers",     "attributes",      "workers",     "group"};
  if (!study) keys.emplace_back("trial");
  root.only(keys);
  Sweep sweep{.space = space_from_yaml(root["space"]),
              .options = {},
              .trial = {},
              .executor = {},
              .mlflow = {},
              .file = root.file()};
  Options& options = sweep.options;
  const auto name = root.get("name", sweep.file.stem().string());
  options.name = root.has("name") ? Setting(name) : Setting<std::string>::unset(name);
  if (name.empty() || name.find('/') != std::string::npos || name == ".." || name == ".")
    root["name"].fail("'name' must be a word that can be a folder's name, not '{}'", name);
  if (const auto objectives = root.find("objectives")) {
    if (root.has("metric")) objectives->fail("give 'metric' or 'objectives', not both");
    for (const auto& [metric, mode] : objectives->entries())
      options.objectives.push_back({metric, detail::mode_from_yaml(mode)});
    if (options.objectives.empty()) objectives->fail("'objectives' is empty: write {{metric: min or max, …}}");
  } else {
    options.metric = root["metric"].as<std::string>();
    options.mode = detail::mode_from_yaml(root["mode"]);
  }
  if (!study) {
    if (root.has("metric")) detail::command_metric(root["metric"], options.metric);
    if (const auto objectives = root.find("objectives"))
      for (const auto& [metric, mode] : objectives->entries()) detail::command_metric(mode, metric);
    if (const auto constraints = root.find("constraints"); constraints && constraints->is_map())
      for (const auto& [metric, bounds] : constraints->entries()) detail::command_metric(bounds, metric);
  }
  if (const auto samples = root.find("samples")) options.samples = detail::at_least(*samples, 1);
  if (const auto seed = root.find("seed")) options.seed = seed->as<std::uint64_t>();
  if (const auto search = root.find("search")) {
    options.search = searcher_from_yaml(*search);
    if (auto own = scheduler_of_searcher_from_yaml(*search)) options.schedule = std::move(*own);
  }
  if (const auto schedule = root.find("schedule")) {
    options.schedule = scheduler_from_yaml(*schedule);
    if (auto replay = replay_from_yaml(*schedule)) {
      if (root.has("search")) root["search"].fail("'schedule: replay' brings its configurations: leave out 'search'");
      detail::checked(*schedule, [&] { return Replay(*replay).prepare(sweep.space, std::uint64_t{0}), 0; });
      options.search = std::move(*replay);
      if (options.samples == 0) options.samples = 1;
    }
  }
  if (const auto resources = root.find("resources")) options.resources = detail::resources_from_yaml(*resources);
  if (const auto workers = root.find("workers")) {
    options.workers = detail::workers_from_yaml(*workers);
    if (const auto plan = workers->is_map() ? workers->find("plan") : std::nullopt)
      options.resize = detail::worker_plan_from_yaml(*plan, options.workers);
    if (study && options.workers.several())
      workers->fail("'workers' is for sweeps: a trial of a study has one worker, its caller");
  }
  if (const auto group = root.find("group")) options.group = detail::group_from_yaml(*group);
  if (const auto concurrency = root.find("concurrency")) options.concurrency = detail::at_least(*concurrency, 1);
  // Who says how many trials run at once, and nothing of what each takes, means just that number.
  const bool cpus_given = root.has("resources") && root["resources"].has("cpus");
  if (options.concurrency > 0 && !cpus_given) options.resources.cpus = 0;
  if (const auto stop = root.find("stop")) options.stop = detail::stop_from_yaml(*stop, objectives_of(options));
  if (const auto constraints = root.find("constraints"))
    options.constraints = detail::constraints_from_yaml(*constraints);
  if (const auto checkpoint = root.find("checkpoint")) options.checkpoint = detail::checkpoint_from_yaml(*checkpoint);
  if (const auto hang = root.find("hang_limit")) options.hang_limit = hang->duration();
  if (const auto limit = root.find("log_limit")) {
    options.log_limit = limit->bytes();
    detail::checked(*limit, [&] { return require_log_limit(options.log_limit), 0; });
  }
  if (const auto grace = root.find("interrupt_grace")) options.interrupt_grace = grace->duration();
  if (const auto patience = root.find("ordered_patience")) options.ordered_patience = patience->duration();
  options.ordered = root.get("ordered", false);
  if (!study) {
    sweep.trial = detail::trial_from_yaml(root["trial"]);
    if (root.has("metric")) detail::require_expression(root["metric"], *sweep.trial, options.metric);
    if (const auto objectives = root.find("objectives"))
      for (const auto& [metric, mode] : objectives->entries()) detail::require_expression(mode, *sweep.trial, metric);
    if (const auto constraints = root.find("constraints"))
      for (const auto& [metric, bounds] : constraints->entries())
        detail::require_expression(bounds, *sweep.trial, metric);
  }
  if (const auto failures = root.find("failures")) {
    failures->only({"max", "max_trials", "log"});
    if (const auto max = failures->find("max")) options.max_failures = detail::at_least(*max, 0);
    if (const auto max = failures->find("max_trials")) options.max_failed_trials = detail::at_least(*max, 0);
    if (const auto log = failures->find("log"); log && sweep.trial)
      sweep.trial->log_rules = detail::log_rules_from_yaml(*log);
  }
  if (const auto executor = root.find("executor")) sweep.executor = detail::executor_from_yaml(*executor);
  // On machines that come with the queue, it takes cpus to tell how many machines that number of trials fills.
  if (sweep.executor.ssh && !sweep.executor.ssh->cluster.empty() && !cpus_given) options.resources.cpus = 1;
  // A worker of Slurm or Kubernetes is asked for one trial, which has all of it, unless it is said what a trial takes.
  const bool gpus_given = root.has("resources") && root["resources"].has("gpus");
  if (const auto& slurm = sweep.executor.slurm) {
    if (!cpus_given) options.resources.cpus = slurm->cpus;
    if (!gpus_given) options.resources.gpus = gpus_of_gres(slurm->gres);
  }
  if (const auto& kubernetes = sweep.executor.kubernetes) {
    if (!cpus_given) options.resources.cpus = kubernetes->cpus;
    if (!gpus_given) options.resources.gpus = kubernetes->gpus;
  }
  if (const auto loggers = root.find("loggers")) detail::loggers_from_yaml(*loggers, study, sweep);
  if (const auto attributes = root.find("attributes")) {
    options.attributes = detail::params_from_yaml(*attributes);
    for (const auto& [attribute, value] : options.attributes)
      detail::checked(*attributes, [&] { detail::require_attribute_name(attribute); });
  }
  if (const auto output = root.find("output")) options.output = output->as<std::string>();
  if (const auto start = root.find("start_with"))
    for (const auto& item : start->items()) {
      options.start_with.push_back(detail::params_from_yaml(item));
      detail::checked(item, [&] { return sweep.space.point(options.start_with.back()); });
    }
  if (const auto known = root.find("known"))
    for (const auto& item : known->items()) {
      item.only({"params", "metrics", "steps"});
      KnownResult result;
      result.params = detail::params_from_yaml(item["params"]);
      detail::checked(item, [&] { return sweep.space.point(result.params); });
      for (const auto& [metric, value] : item["metrics"].entries())
        result.metrics.emplace_back(metric, value.as<double>());
      for (const auto& objective : objectives_of(options))
        if (!objective.metric.empty() && find_metric(result.metrics, objective.metric) == nullptr)
          item["metrics"].fail("'{}.metrics' lacks the metric that is tuned: add {}", item.path(), objective.metric);
      result.steps = item.get("steps", 1);
      if (result.steps < 1) item["steps"].fail("'{}.steps' must be 1 or more, not {}", item.path(), result.steps);
      options.known.push_back(std::move(result));
    }
  return sweep;
}

}  // namespace hypertune::inline v0
