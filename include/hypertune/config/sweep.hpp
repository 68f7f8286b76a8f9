// Reads sweep.yaml: a whole experiment as a file.
#pragma once

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/detail/sweep_parts.hpp>
#include <hypertune/config/given_file.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/config/space.hpp>
#include <hypertune/config/sweep_keys.hpp>
#include <hypertune/config/sweep_options.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/trial/detail/log_limit.hpp>
#include <hypertune/tune/options.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// Reads one file, part by part.
class SweepReader {
 public:
  using Complain = std::function<void(const Error&)>;

  /// With `complain`, each part's errors are passed to it and the other parts are still read. Without it the first
  /// Error is thrown.
  SweepReader(const Node& root, bool study, Complain complain = {})
      : root_(root), study_(study), complain_(std::move(complain)) {}

  /// nullopt: there were errors, which `complain` has received.
  std::optional<Sweep> read() {
    part([&] { read_limits(); });  // first, so that the log's limit is refused with the same message as in programs
    part([&] { check_values(root_, sweep_keys(study_)); });
    part([&] { space_ = space_from_yaml(root_["space"], complain_); });
    part([&] { read_name(); });
    part([&] { read_objectives(); });
    part([&] { read_counts(); });
    part([&] { read_algorithms(); });
    part([&] { read_workers(); });
    read_policies();
    part([&] { read_trial(); });
    part([&] { read_failures(); });
    part([&] { read_executor(); });
    part([&] { read_notes(); });
    part([&] { read_start(); });
    part([&] { read_known(); });
    if (failed_) return std::nullopt;
    return Sweep{.space = std::move(*space_),
                 .options = std::move(options_),
                 .trial = std::move(trial_),
                 .executor = std::move(executor_),
                 .mlflow = std::move(mlflow_),
                 .file = root_.file()};
  }

 private:
  template <class Read>
  void part(Read&& read) {
    if (!complain_) return read();
    try {
      read();
    } catch (const Error& error) {
      failed_ = true;
      complain_(error);
    }
  }

  void read_name() {
    const auto name = root_.get("name", std::filesystem::path(root_.file()).stem().string());
    options_.name = root_.has("name") ? Setting(name) : Setting<std::string>::unset(name);
    if (name.empty() || name.find('/') != std::string::npos || name == ".." || name == ".")
      root_["name"].fail("'name' must be a word that can be a folder's name, not '{}'", name);
  }

  void read_objectives() {
    if (const auto objectives = root_.find("objectives")) {
      if (root_.has("metric")) objectives->fail("give 'metric' or 'objectives', not both");
      for (const auto& [metric, mode] : objectives->entries())
        options_.objectives.push_back({metric, mode_from_yaml(mode)});
      if (options_.objectives.empty()) objectives->fail("'objectives' is empty: write {{metric: min or max, …}}");
    } else {
      options_.metric = root_["metric"].as<std::string>();
      options_.mode = mode_from_yaml(root_["mode"]);
    }
    if (study_) return;
    if (root_.has("metric")) command_metric(root_["metric"], options_.metric);
    if (const auto objectives = root_.find("objectives"))
      for (const auto& [metric, mode] : objectives->entries()) command_metric(mode, metric);
    if (const auto constraints = root_.find("constraints"); constraints && constraints->is_map())
      for (const auto& [metric, bounds] : constraints->entries()) command_metric(bounds, metric);
  }

  void read_counts() {
    if (const auto samples = root_.find("samples")) options_.samples = samples->as<int>();
    if (const auto seed = root_.find("seed")) options_.seed = seed->as<std::uint64_t>();
  }

  void read_algorithms() {
    part([&] {
      const auto search = root_.find("search");
      if (!search) return;
      options_.search = searcher_from_yaml(*search);
      if (auto own = scheduler_of_searcher_from_yaml(*search)) options_.schedule = std::move(*own);
    });
    const auto schedule = root_.find("schedule");
    if (!schedule) return;
    auto replay = replay_from_yaml(*schedule);
    options_.schedule = replay ? AnyScheduler(*replay) : scheduler_from_yaml(*schedule);
    if (!replay) return;
    if (root_.has("search")) root_["search"].fail("'schedule: replay' brings its configurations: leave out 'search'");
    if (space_) checked(*schedule, [&] { return Replay(*replay).prepare(*space_, std::uint64_t{0}), 0; });
    options_.search = std::move(*replay);
    if (options_.samples == 0) options_.samples = 1;
  }

  void read_workers() {
    if (const auto resources = root_.find("resources")) options_.resources = options_from<Resources>(*resources);
    if (const auto workers = root_.find("workers")) {
      options_.workers = workers_from_yaml(*workers);
      if (const auto plan = workers->is_map() ? workers->find("plan") : std::nullopt)
        options_.resize = worker_plan_from_yaml(*plan, options_.workers);
      if (study_ && options_.workers.several())
        workers->fail("'workers' is for sweeps: a trial of a study has one worker, its caller");
    }
    if (const auto group = root_.find("group")) options_.group = group_from_yaml(*group);
    if (const auto concurrency = root_.find("concurrency")) options_.concurrency = concurrency->as<int>();
    // If the number of concurrent trials is given, but not what each takes, only that number limits them.
    if (options_.concurrency > 0 && !given("cpus")) options_.resources.cpus = 0;
  }
  bool given(std::string_view resource) const {
    const auto resources = root_.find("resources");
    return resources && resources->is_map() && resources->has(resource);
  }

  void read_policies() {
    part([&] {
      if (const auto stop = root_.find("stop")) options_.stop = stop_from_yaml(*stop, objectives_of(options_));
    });
    part([&] {
      if (const auto constraints = root_.find("constraints"))
        options_.constraints = constraints_from_yaml(*constraints);
    });
    part([&] {
      if (const auto checkpoint = root_.find("checkpoint"))
        options_.checkpoint = options_from<CheckpointPolicy>(*checkpoint);
    });
  }

  void read_limits() {
    if (const auto hang = root_.find("hang_timeout")) options_.hang_timeout = hang->duration();
    if (const auto limit = root_.find("log_limit")) {
      options_.log_limit = limit->bytes();
      checked(*limit, [&] { require_log_limit(options_.log_limit); });
    }
    if (const auto grace = root_.find("interrupt_grace")) options_.interrupt_grace = grace->duration();
    if (const auto timeout = root_.find("ordered_timeout")) options_.ordered_timeout = timeout->duration();
    options_.ordered = root_.get("ordered", false);
  }

  void read_trial() {
    if (study_) return;
    trial_ = trial_from_yaml(root_["trial"]);
    if (trial_->report == ReportRule::best && options_.objectives.size() > 1)
      root_["trial"]["report"].fail(
          "'trial.report: best' needs one metric to be the best by, but 'objectives' has {}: write last",
          options_.objectives.size());
    if (trial_->repeat.times > 1 && options_.workers.several())
      root_["trial"]["repeat"].fail(
          "'trial.repeat' is for trials of one worker, but 'workers' has more: repeat within the command");
    if (root_.has("metric")) require_expression(root_["metric"], *trial_, options_.metric);
    if (const auto objectives = root_.find("objectives"))
      for (const auto& [metric, mode] : objectives->entries()) require_expression(mode, *trial_, metric);
    if (const auto constraints = root_.find("constraints"))
      for (const auto& [metric, bounds] : constraints->entries()) require_expression(bounds, *trial_, metric);
  }

  void read_failures() {
    const auto failures = root_.find("failures");
    if (!failures) return;
    check_values(*failures, failures_keys());
    if (const auto max = failures->find("max_retries")) options_.max_retries = max->as<int>();
    if (const auto max = failures->find("max_trials")) options_.max_failed_trials = max->as<int>();
    if (const auto log = failures->find("log"); log && trial_) trial_->log_rules = log_rules_from_yaml(*log);
  }

  void read_executor() {
    if (const auto executor = root_.find("executor")) executor_ = executor_from_yaml(*executor);
    // Pods tell each other their addresses, and the machines of a cluster may be pods.
    const bool by_network = executor_.slurm || (executor_.ssh && executor_.ssh->cluster.empty());
    options_.group.required = trial_ && by_network;
    // On machines launched for the queue, the number of machines follows from the cpus of a trial.
    const bool cpus_given = given("cpus"), gpus_given = given("gpus");
    if (executor_.ssh && !executor_.ssh->cluster.empty() && !cpus_given) options_.resources.cpus = 1;
    // A worker of Slurm or Kubernetes is requested for one trial, which gets all of it unless the file says what a
    // trial takes.
    if (const auto& slurm = executor_.slurm) {
      if (!cpus_given) options_.resources.cpus = slurm->cpus;
      if (!gpus_given) options_.resources.gpus = gpus_of_gres(slurm->gres);
    }
    if (const auto& kubernetes = executor_.kubernetes) {
      if (!cpus_given) options_.resources.cpus = capacity_of(*kubernetes).cpus;
      if (!gpus_given) options_.resources.gpus = kubernetes->gpus;
    }
  }

  void read_notes() {
    if (const auto loggers = root_.find("loggers")) loggers_from_yaml(*loggers, study_, options_, mlflow_);
    if (const auto attributes = root_.find("attributes")) {
      options_.attributes = params_from_yaml(*attributes);
      for (const auto& [attribute, value] : options_.attributes)
        checked(*attributes, [&, &attribute = attribute] { require_attribute_name(attribute); });
    }
    if (const auto output = root_.find("output")) options_.output = output->as<std::string>();
  }

  void read_start() {
    const auto start = root_.find("start_with");
    if (!start) return;
    for (const auto& item : start->is_scalar() ? std::vector<Node>{*start} : start->items())
      part([&] {
        if (item.is_scalar()) {
          for (auto& row : given_file(item, false)) options_.start_with.push_back(std::move(row.params));
          return;
        }
        options_.start_with.push_back(params_from_yaml(item));
        if (space_) checked(item, [&] { return space_->configuration(options_.start_with.back()); });
      });
  }

  std::vector<KnownResult> given_file(const Node& node, bool results) {
    const auto file = found_from(root_.file(), node.as<std::string>());
    if (!space_) {  // its error is told
      if (!std::filesystem::exists(file)) node.fail("{}: {}", node.title(), no_given_file(file));
      return {};
    }
    GivenFor wanted{.space = *space_, .objectives = {}, .further = {}, .results = results};
    if (results) wanted.objectives = objectives_of(options_);
    for (const auto& bound : options_.constraints) wanted.further.push_back(bound.metric);
    try {
      return read_given(file, wanted);
    } catch (const Error& error) { node.fail("{}: {}", node.title(), error.what()); }
  }

  void read_known() {
    const auto known = root_.find("known");
    if (!known) return;
    for (const auto& item : known->is_scalar() ? std::vector<Node>{*known} : known->items())
      part([&] {
        if (item.is_scalar()) {
          auto rows = given_file(item, true);
          std::move(rows.begin(), rows.end(), std::back_inserter(options_.known));
          return;
        }
        check_values(item, known_keys());
        KnownResult result;
        result.params = params_from_yaml(item["params"]);
        if (space_) checked(item, [&] { return space_->configuration(result.params); });
        for (const auto& [metric, value] : item["metrics"].entries())
          result.metrics.emplace_back(metric, value.as<double>());
        for (const auto& objective : objectives_of(options_))
          if (!objective.metric.empty() && find_metric(result.metrics, objective.metric) == nullptr)
            item["metrics"].fail("'{}.metrics' lacks the metric that is tuned: add {}", item.path(), objective.metric);
        result.steps = item.get("steps", 1);
        options_.known.push_back(std::move(result));
      });
  }

  const Node& root_;
  bool study_;
  Complain complain_;
  bool failed_ = false;
  std::optional<SearchSpace> space_;
  Options options_;
  std::optional<TrialOptions> trial_;
  ExecutorOptions executor_;
  std::vector<MlflowOptions> mlflow_;
};

}  // namespace detail

/// Reads a sweep (or a study, which is the same without `trial`) and validates every key. Errors are of kind `input`
/// and start with file and line. `study`: whether `trial` must be absent. Words of earlier versions are taken too.
inline Sweep sweep_from_yaml(const Node& root, bool study) {
  const Node present = with_present_words(root, sweep_shape(study));
  return *detail::SweepReader(present, study).read();
}

/// Adds the errors in a sweep's file, each with its place. Parts that depend on a wrong part are not checked.
inline void add_complaints_about_sweep(Complaints& all, const Node& root, bool study) {
  const auto shape = sweep_shape(study);
  if (!root.is_map()) return add_complaints_about(all, root, shape);
  const Node present = with_present_words(root, shape);
  detail::SweepReader(present, study, [&](const Error& error) { all.add(error); }).read();
  add_complaints_about(all, present, shape);
}

/// The same alone, one line each.
inline std::vector<std::string> complaints_about_sweep(const Node& root, bool study) {
  Complaints all;
  add_complaints_about_sweep(all, root, study);
  return all.lines();
}

}  // namespace hypertune::inline v0
