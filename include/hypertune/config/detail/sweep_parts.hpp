// The parts of a sweep's file, one function per part.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/option_forms.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/sweep_keys.hpp>
#include <hypertune/config/sweep_options.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/jsonl_logger.hpp>
#include <hypertune/record/mlflow_options.hpp>
#include <hypertune/record/prometheus_logger.hpp>
#include <hypertune/record/tensorboard_logger.hpp>
#include <hypertune/trial/detail/group_address.hpp>
#include <hypertune/trial/detail/trial_file.hpp>
#include <hypertune/trial/metric_name.hpp>
#include <hypertune/tune/options.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

using words = std::vector<std::string_view>;

inline Mode mode_from_yaml(const Node& node) {
  expect_shape(node, mode_shape());
  return node.as<std::string>().starts_with("max") ? Mode::maximize : Mode::minimize;
}

inline int at_least(const Node& node, int least) {
  const int value = node.as<int>();
  if (value < least) node.fail("'{}' must be {} or more, not {}", node.path(), least, value);
  return value;
}

/// Checks the name of a metric that a command reports. `node`: where it is named.
inline void command_metric(const Node& node, const std::string& name) {
  if (const auto why = reserved_in_report_lines(name); !why.empty()) node.fail("{}", why);
}

/// workers: 3, or {min: 2, max: 4, placement: spread}
inline Workers workers_from_yaml(const Node& node) {
  if (!node.is_map()) return {node.as<int>()};
  auto workers = options_from<Workers>(node, workers_keys());
  if (!node.has("min") && !node.has("max"))
    node.fail("'{}' needs a number of workers: write {{min: 2, max: 4}}, or just 4", node.path());
  if (!node.has("max")) workers.max = workers.min;
  if (workers.max < workers.min)
    node["max"].fail("'{}' must be '{}' or more, which is {}, not {}", node["max"].path(), node["min"].path(),
                     workers.min, workers.max);
  return workers;
}

/// workers: {…, plan: {0: 2, 30: 4, 60: 8}}: the number of workers from each number of steps on.
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
  check_values(node, group_keys());
  if (const auto network = node.find("network")) {
    group.network = network->as<std::string>();
    if (!parse_network(group.network))
      network->fail("'{}' must be a network such as 10.1.0.0/16, not '{}'", network->path(), group.network);
  }
  return group;
}

inline StopCondition stop_from_yaml(const Node& node, const std::vector<Objective>& objectives) {
  StopCondition stop;
  const auto own = names_of(stop_keys());
  if (const auto* watch = key_watch()) watch->known(node.path(), own);
  const auto tuned = [&](const std::string& name) {
    return std::any_of(objectives.begin(), objectives.end(), [&](const auto& o) { return o.metric == name; });
  };
  for (const auto& [key, value] : node.entries()) {
    const auto add = [&](StopCondition condition) { stop = stop | condition; };
    checked(value, [&, &key = key, &value = value] {
      if (value.is_map() &&
          (value.has("at_least") || value.has("at_most"))) {  // a metric, even if its name is one of ours
        check_values(value, metric_stop_keys());
        if (value.has("at_least")) add(hypertune::at_least(key, value["at_least"].as<double>()));
        if (value.has("at_most")) add(at_most(key, value["at_most"].as<double>()));
      } else if (key == "steps" || key == "training_iteration") {
        add(steps(value.as<std::int64_t>()));
      } else if (key == "time") {
        const auto text = to_string(value.scalar());
        if (tuned(key) && !text.empty() && text.back() >= '0' && text.back() <= '9')
          value.fail(
              "'stop.time' is a limit on the experiment's time, but the metric that is tuned is called 'time', too: "
              "write {}s for the limit, or {{at_least: {}}} or {{at_most: {}}} for the metric",
              text, text, text);
        add(within(value.duration()));
      } else if (key == "total_steps") {
        add(total_steps(value.as<std::int64_t>()));
      } else if (key == "failed_trials") {
        add(failed_trials(value.as<std::int64_t>()));
      } else if (key == "plateau") {
        add(plateau(options_from<Plateau>(value)));
      } else if (key == "expected_gain") {
        add(expected_gain(options_from<ExpectedGain>(value)));
      } else if (tuned(key)) {
        add(until(key, value.as<double>()));
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
    check_values(bounds, constraint_keys());
    for (const auto& [side, value] : bounds.entries())
      checked(value, [&, &metric = metric, &side = side, &value = value] {
        const double bound = value.as<double>();
        constraints.push_back(side == "at_most" ? at_most(metric, bound) : hypertune::at_least(metric, bound));
        return 0;
      });
  }
  return constraints;
}

inline std::vector<LogRuleOptions> log_rules_from_yaml(const Node& node) {
  std::vector<LogRuleOptions> rules;
  for (const auto& item : node.items()) {
    check_values(item, log_rule_keys());
    LogRuleOptions rule{.match = item["match"].as<std::string>(), .where = item["match"].where()};
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

/// trial.files: {in.lammps: template.in, run.json: {text: "{}", placeholders: <<name>>}}
inline std::vector<TrialFileOptions> trial_files_from_yaml(const Node& node) {
  std::vector<TrialFileOptions> files;
  for (const auto& [path, value] : node.entries()) {
    TrialFileOptions file;
    file.path = path;
    file.where = value.where();
    if (const auto why = refused_trial_file(path); !why.empty()) value.fail("'{}': {}", value.path(), why);
    if (value.is_map()) {
      check_values(value, trial_file_keys());
      if (value.has("from") == value.has("text"))
        value.fail("'{}' needs one of 'from' (the template's file) and 'text' (the template itself)", value.path());
      if (value.has("text")) file.text = value["text"].as<std::string>();
      if (value.has("from")) file.from = value["from"].as<std::string>();
      if (const auto marks = value.find("placeholders")) {
        const auto text = marks->as<std::string>();
        const auto name = text.find("name");
        if (name == std::string::npos || name == 0 || name + 4 == text.size())
          marks->fail("'{}' must show how a placeholder called 'name' is written, with marks on both sides: <<name>>",
                      marks->path());
        file.open = text.substr(0, name);
        file.close = text.substr(name + 4);
      }
    } else {
      file.from = value.as<std::string>();
    }
    if (!file.text && file.from.empty()) value.fail("'{}' is empty: it must name the template", value.path());
    files.push_back(std::move(file));
  }
  return files;
}

/// trial.measure: [duration, peak_memory], or {wall: duration}
inline void measure_from_yaml(const Node& node, TrialOptions& trial) {
  const auto add = [&](const std::string& name, const Node& what) {
    const auto measured = measured_from(what.as<std::string>());
    if (!measured)
      what.fail("there is no measure '{}'{}", what.as<std::string>(),
                suggestion(what.as<std::string>(), words({"duration", "cpu_time", "peak_memory"})));
    command_metric(what, name);
    if (trial.metrics.contains(name))
      what.fail(
          "the metric '{}' has an expression in 'trial.metrics', and is measured, too: write {{NAME: {}}} for another "
          "name",
          name, what.as<std::string>());
    for (const auto& [other, kind] : trial.measure)
      if (other == name) what.fail("'{}' is measured twice: remove one of the two", name);
    trial.measure.emplace_back(name, *measured);
  };
  if (node.is_map())
    for (const auto& [name, what] : node.entries()) add(name, what);
  else
    for (const Node& what : node.is_list() ? node.items() : std::vector<Node>{node}) add(what.as<std::string>(), what);
}

/// trial.command: words, and lists of words that are there together or not at all.
inline void command_from_yaml(const Node& node, TrialOptions& trial) {
  if (!node.is_list()) {
    trial.command = node.texts();
    return;
  }
  for (const auto& word : node.items()) {
    if (word.is_map()) word.fail("'{}' is a map: put the word in quotes, as in \"{{lr}}\"", word.path());
    const std::size_t first = trial.command.size();
    for (const auto& each : word.is_list() ? word.items() : std::vector<Node>{word}) {
      trial.command.push_back(each.as<std::string>());
      trial.command_places.push_back(each.where());
    }
    if (!word.is_list()) continue;
    if (first == 0) word.fail("'{}': the program cannot vanish: write it as a word, not as a list", word.path());
    if (trial.command.size() == first) word.fail("'{}' is an empty list: leave it out", word.path());
    trial.command_groups.emplace_back(first, trial.command.size());
  }
}

/// trial.output, .success, .report and .repeat
inline void read_runs(const Node& node, TrialOptions& trial) {
  if (node.get("output", std::string("pipe")) == "line") trial.output = CommandOutput::line;
  if (const auto success = node.find("success")) {
    trial.success.clear();
    for (const Node& code : success->is_list() ? success->items() : std::vector<Node>{*success}) {
      trial.success.push_back(at_least(code, 0));
      if (trial.success.back() > 255)
        code.fail("'{}' must be 255 or less, as exit codes are, not {}", code.path(), trial.success.back());
    }
    if (trial.success.empty())
      success->fail("'{}' is empty: it must list the exit codes that mean success", success->path());
  }
  const auto report = node.get("report", std::string("each"));
  trial.report = report == "best" ? ReportRule::best : report == "last" ? ReportRule::last : ReportRule::each;
  const auto repeat = node.find("repeat");
  if (!repeat) return;
  if (!repeat->is_map()) {
    trial.repeat.times = repeat->as<int>();
  } else {
    check_values(*repeat, repeat_keys());
    trial.repeat.times = (*repeat)["times"].as<int>();
    static constexpr std::pair<std::string_view, RepeatRule> rules[] = {{"median", RepeatRule::median},
                                                                        {"mean", RepeatRule::mean},
                                                                        {"min", RepeatRule::min},
                                                                        {"max", RepeatRule::max},
                                                                        {"worst", RepeatRule::worst}};
    const auto use = repeat->get("use", std::string("median"));
    for (const auto& [word, rule] : rules)
      if (word == use) trial.repeat.use = rule;
  }
  if (trial.repeat.times == 1 || trial.report != ReportRule::each) return;
  if (const auto each = node.find("report"))
    each->fail("'{}' is 'each', but with 'trial.repeat' each run counts with one report: write last or best",
               each->path());
  trial.report = ReportRule::last;
}

inline TrialOptions trial_from_yaml(const Node& node) {
  check_values(node, trial_keys());
  TrialOptions trial;
  if (node.has("command") == node.has("binary"))
    node.fail("'trial' needs one of 'command' (a list of words) and 'binary' (a path)");
  if (node.has("command")) {
    command_from_yaml(node["command"], trial);
    if (trial.command.empty() || trial.command.front().empty())
      node["command"].fail("'trial.command' is empty: it must name a program");
  } else {
    trial.command = {node["binary"].as<std::string>()};
  }
  if (const auto metrics = node.find("metrics"))
    for (const auto& [name, pattern] : metrics->entries()) {
      command_metric(pattern, name);
      if (pattern.is_map()) check_values(pattern, metric_expression_keys());
      const Node match = pattern.is_map() ? pattern["match"] : pattern;
      trial.metrics[name] = match.as<std::string>();
      trial.metric_places[name] = match.where();
      if (pattern.is_map() && pattern.has("unit")) trial.units[name] = pattern["unit"].as<std::string>();
    }
  if (const auto measure = node.find("measure")) measure_from_yaml(*measure, trial);
  if (const auto files = node.find("files")) trial.files = trial_files_from_yaml(*files);
  if (const auto step = node.find("step")) {
    if (!node.has("metrics"))
      step->fail("'{}' goes with 'trial.metrics': a JSON line has its step in it", step->path());
    if (step->is_map()) {
      check_values(*step, step_expression_keys());
      if (step->has("first")) trial.first_step = (*step)["first"].as<int>();
      trial.steps_of_attempt = step->has("counts") && (*step)["counts"].as<std::string>() == "attempt";
    }
    const Node match = step->is_map() ? (*step)["match"] : *step;
    trial.step = match.as<std::string>();
    trial.step_place = match.where();
  }
  if (const auto environment = node.find("environment"))
    for (const auto& [name, value] : environment->entries()) trial.environment[name] = value.written();
  if (const auto grace = node.find("stop_grace")) trial.stop_grace = grace->duration();
  read_runs(node, trial);
  return trial;
}

/// If `trial.metrics` has expressions, every metric that the sweep uses needs one: there is no other way to report it
/// for the same step. `node`: where `metric` is named.
inline void require_expression(const Node& node, const TrialOptions& trial, const std::string& metric) {
  if (trial.metrics.empty() || trial.metrics.contains(metric)) return;
  for (const auto& [name, what] : trial.measure)
    if (name == metric) return;
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

/// cluster: CLUSTER.yaml describes the machines and how they are reached, so that other keys may not repeat that.
inline void check_ssh_cluster(const Node& node, const SshExecutorOptions& ssh) {
  const Node cluster = node["cluster"];
  if (node.has("hosts"))
    cluster.fail("give 'hosts' or 'cluster', not both: the machines of a cluster are those of its file");
  for (const std::string_view key : {"ssh_config", "identity_file", "user", "port"})
    if (const auto given = node.find(key))
      given->fail("'{}' contradicts 'cluster': 'auth' of the cluster's file says how its machines are reached",
                  given->path());
  for (const std::string_view key : {"cpus", "gpus", "memory", "custom"})
    if (const auto given = node.find(key))
      given->fail("'{}' contradicts 'cluster': 'available_node_types' of the cluster's file say what a machine has",
                  given->path());
  if (ssh.cluster.empty()) cluster.fail("'{}' is empty: name the cluster's YAML file", cluster.path());
}

inline SshExecutorOptions ssh_from_yaml(const Node& node) {
  SshExecutorOptions ssh;
  const char* environment = std::getenv("HYPERTUNE_HOSTS");
  const bool given = node.is_map() && (node.has("hosts") || node.has("cluster"));
  if (!given && (environment == nullptr || *environment == '\0'))
    node.fail(
        "executor ssh needs 'hosts': [host1, host2], {{file: FILE}}, {{command: […]}} or slurm, or 'cluster': "
        "CLUSTER.yaml, or HYPERTUNE_HOSTS in the environment");
  if (!node.is_map()) return ssh;
  read_known_options(node, ssh);
  if (node.has("cluster")) check_ssh_cluster(node, ssh);
  if (const auto grow = node.find("grow"); grow && !node.has("cluster"))
    grow->fail("'{}' is for 'cluster': give that, too", grow->path());
  if (const auto user = node.find("user")) ssh_host_name(*user);
  return ssh;
}

/// The options of workers that are requested as the queue of trials needs them.
template <class Elastic>
Elastic elastic_from_yaml(const Node& node, const Keys& keys) {
  Elastic options;
  if (!node.is_map()) return options;
  check_keys(node, keys);
  read_known_options(node, options);
  return checked(node, [&] { return check_options(options), options; });
}

inline ExecutorOptions executor_from_yaml(const Node& node) {
  ExecutorOptions executor;
  const bool map = node.is_map();
  executor.type = map ? node.get("type", executor.type) : node.as<std::string>();
  const auto& type = executor.type;
  refuse_simulated(node, type);
  if (type == "slurm") {
    executor.slurm = elastic_from_yaml<SlurmOptions>(node, slurm_keys());
  } else if (type == "kubernetes") {
    executor.kubernetes = elastic_from_yaml<KubernetesOptions>(node, kubernetes_keys());
  } else if (type == "ssh" || type == "local") {
    if (map) {
      check_values(node, type == "ssh" ? ssh_keys() : local_keys());
      if (const auto isolation = node.find("isolation")) executor.isolation = isolation->written();
      describe_capacity(executor, OptionReader{node}, "");
    }
    if (type == "ssh") executor.ssh = ssh_from_yaml(node);
  } else {
    if (map) check_keys(node, local_keys());
    node.fail("there is no executor '{}'{}", type, suggestion(type, words({"local", "ssh", "slurm", "kubernetes"})));
  }
  return executor;
}

/// A logger with options: {type: prometheus, file: …}, {type: mlflow, uri: …}.
inline std::string logger_with_options(const Node& item, Options& options, std::vector<MlflowOptions>& mlflow) {
  static const words known{"prometheus", "mlflow"};
  const auto type = item.find("type");
  if (!type)
    item.fail(
        "'{}' must be a logger's name or have a type, as in 'loggers: [jsonl, {{type: prometheus, file: a.prom}}]': "
        "other loggers take no options",
        item.path());
  const auto name = type->as<std::string>();
  if (name == "prometheus") {
    check_values(item, prometheus_keys());
    options.callbacks.emplace_back(PrometheusLogger(item["file"].as<std::string>()));
  } else if (name == "mlflow") {
    check_values(item, mlflow_keys());
    MlflowOptions server{.uri = item["uri"].as<std::string>(), .experiment = item.get("experiment", std::string())};
    if (const auto grace = item.find("flush_grace")) server.flush_grace = grace->duration();
    mlflow.push_back(std::move(server));
  } else {
    type->fail("there is no logger '{}' that takes options{}", name, suggestion(name, known));
  }
  return name;
}

/// loggers: [tensorboard, jsonl, csv, {type: mlflow, …}]: further outputs of the run.
inline void loggers_from_yaml(const Node& node, bool study, Options& options, std::vector<MlflowOptions>& mlflow) {
  static const words known{"tensorboard", "jsonl", "csv"};
  std::vector<std::string> seen;
  for (const Node& item : node.is_list() ? node.items() : std::vector<Node>{node}) {
    const auto name = item.is_map() ? logger_with_options(item, options, mlflow) : item.as<std::string>();
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

}  // namespace hypertune::inline v0
