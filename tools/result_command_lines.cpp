// The command lines of the commands that read experiments, wherever they run.
#include "cluster.hpp"
#include "command_lines.hpp"
#include "commands.hpp"
#include "count_option.hpp"
#include "kubernetes_driver.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

using Chosen = std::function<int()>;

// The options of a command that also reads the record of a sweep that was submitted to Kubernetes.
struct Submitted {
  bool chosen = false;
  std::vector<std::string> set;
  std::string volume;

  void add_to(CLI::App& command) {
    auto* flag =
        add_submitted(command, chosen, set,
                      "DIR is the YAML file of a sweep that was submitted to Kubernetes: what its driver has recorded");
    command.add_option("--volume", volume, "with --kubernetes: the volume claim of yours with the record")->needs(flag);
  }
  explicit operator bool() const { return chosen; }
  int inspect(const std::string& file, const std::vector<std::string>& words) const {
    return inspect_on_kubernetes({file, set, volume}, words);
  }
};

void add_results(CLI::App& app, Chosen& chosen) {
  const auto submitted = std::make_shared<Submitted>();
  const auto arguments = std::make_shared<ResultsArguments>();
  auto* command = app.add_subcommand("results", "all trials: a table, best first; json and csv in their order");
  command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
  command->add_option("--format", arguments->format)
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  command->add_flag("--history", arguments->history, "with json: each report too");
  command->add_flag("--cost", arguments->cost,
                    "with json: an object of `trials` and `cost`, what the cluster's machines have cost");
  command->add_flag("--pareto", arguments->pareto, "only the trials that no other beats in every objective");
  command->add_flag("--importance", arguments->importance,
                    "how much of the variation each parameter explains, in place of the trials");
  command->add_option("--rows", arguments->rows, "at most this many rows of the table")->check(count());
  submitted->add_to(*command);
  command->callback([arguments, submitted, &chosen] {
    chosen = [arguments, submitted] {
      return *submitted ? submitted->inspect(arguments->directory, words_of(*arguments)) : results(*arguments);
    };
  });
}

void add_best(CLI::App& app, Chosen& chosen) {
  struct Arguments {
    std::string directory, format = "table";
    Submitted submitted;
  };
  const auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("best", "the best trial");
  command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
  command->add_option("--format", arguments->format)->check(CLI::IsMember({"table", "json"}));
  arguments->submitted.add_to(*command);
  command->callback([arguments, &chosen] {
    chosen = [arguments] {
      const auto& [directory, format, submitted] = *arguments;
      return submitted ? submitted.inspect(directory, {"best", "experiment", "--format", format})
                       : best(directory, format);
    };
  });
}

void add_list(CLI::App& app, Chosen& chosen) {
  struct Arguments {
    std::string folder = "runs", format = "table";
  };
  const auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("list", "the experiments in a folder and below it");
  command->add_option("DIR", arguments->folder, "where to look")->capture_default_str();
  command->add_option("--format", arguments->format)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return list(arguments->folder, arguments->format); }; });
}

void add_compare(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<CompareArguments>();
  auto* command =
      app.add_subcommand("compare", "experiments side by side, and whether their difference is more than chance");
  command
      ->add_option("[GROUP=]DIR", arguments->directories,
                   "the experiments' folders; repetitions of one thing have the same GROUP, or lie in one folder DIR")
      ->required();
  command->add_option("--metric", arguments->metric, "compare by this one, in place of the first objective");
  command->add_option("--mode", arguments->mode, "of a metric that is no objective: which is better")
      ->check(CLI::IsMember({"min", "max"}));
  command->add_flag("--by-name", arguments->by_name, "experiments that have the same name are repetitions");
  command
      ->add_option("--at", arguments->at,
                   "where repetitions are compared: at their ends, or when all had as many trials or reports, or as "
                   "much time")
      ->check(CLI::IsMember({"end", "trials", "reports", "time"}))
      ->capture_default_str();
  command->add_option("--format", arguments->format)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return compare(*arguments); }; });
}

void add_dashboard(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<DashboardArguments>();
  auto* command = app.add_subcommand("dashboard", "a live page of experiments, in a browser");
  command->add_option("DIR", arguments->folders, "experiments' folders, or folders that have some below them")
      ->required();
  command->add_option("--port", arguments->port, "0: any free port")->capture_default_str();
  command->add_option("--listen", arguments->listen, "this machine's address; beyond loopback with TLS and a token")
      ->capture_default_str();
  command->add_option("--identity", arguments->identity,
                      "beyond loopback: a file with a certificate and its key (PEM), in place of a new one");
  command->add_option("--token", arguments->token,
                      "beyond loopback: a file whose first line is the token, in place of a new one");
  command->add_flag("--open", arguments->open, "open it in this machine's browser");
  command->callback([arguments, &chosen] { chosen = [arguments] { return dashboard(*arguments); }; });
}

void add_export(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<ExportArguments>();
  auto* command = app.add_subcommand("export", "results for other programs");
  command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
  command
      ->add_option("--format", arguments->format,
                   "csv, json, optuna (an SQLite storage), trace (for ui.perfetto.dev) or arrow (reports and trials)")
      ->check(CLI::IsMember({"table", "csv", "json", "optuna", "trace", "arrow"}))
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output,
                      "the file to write (arrow: the folder); standard output where that makes sense");
  auto* schedule_flag = command->add_flag(
      "--schedule", arguments->schedule,
      "the best trial's configurations by step, as population based training found them (JSON, which is YAML, too)");
  const auto trial = std::make_shared<std::string>();
  command->add_option("--trial", *trial, "with --schedule: of this trial, in place of the best")->needs(schedule_flag);
  command->callback([arguments, trial, &chosen] {
    chosen = [arguments, trial] {
      if (!trial->empty()) arguments->trial = trial_number(*trial);
      return export_results(*arguments);
    };
  });
}

void add_what_if(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<WhatIfArguments>();
  auto* command = app.add_subcommand(
      "what-if", "what an experiment would have found under another schedule, or with other workers");
  command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
  command->add_option("--set", arguments->set, "schedule.KEY=VALUE: in place of the recorded one")
      ->allow_extra_args(false);
  command->add_option("--workers", arguments->workers, "trials at once; several numbers: one after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--shuffled", arguments->shuffled, "the trials come in another order, by --seed");
  command->add_option("--seed", arguments->seed, "of --shuffled")->capture_default_str();
  command->add_option("--format", arguments->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return what_if(*arguments); }; });
}

void add_import(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<ImportArguments>();
  auto* command = app.add_subcommand("import", "an experiment of Optuna or Ray Tune as one of hypertune");
  command
      ->add_option("SOURCE", arguments->source,
                   "an SQLite storage of Optuna, a file of its JournalStorage, or a folder of Ray Tune's results")
      ->required();
  command->add_option("-o,--output", arguments->directory, "the new experiment's folder")->required();
  command->add_option("--study", arguments->study, "of an Optuna storage with several");
  command->add_option("--metric", arguments->metric, "what was tuned with Ray; what to call Optuna's value");
  command->add_option("--mode", arguments->mode, "of Ray's metric")->check(CLI::IsMember({"min", "max"}));
  command->callback([arguments, &chosen] { chosen = [arguments] { return import_from(*arguments); }; });
}

}  // namespace

void add_status_command(CLI::App& app, std::function<int()>& chosen) {
  struct Arguments {
    std::string directory, format = "table", cluster_name;
    Submitted submitted;
  };
  const auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("status", "the state of an experiment, or of a cluster");
  command->add_option("DIR", arguments->directory, "the experiment's folder, or the cluster's YAML file")->required();
  command->add_option("--format", arguments->format)->check(CLI::IsMember({"table", "json"}));
  command->add_option("-n,--cluster-name", arguments->cluster_name, "in place of the cluster file's");
  arguments->submitted.add_to(*command);
  command->callback([arguments, &chosen] {
    chosen = [arguments] {
      const auto& [directory, format, cluster_name, submitted] = *arguments;
      if (submitted) return submitted.inspect(directory, {"status", "experiment", "--format", format});
      refuse_sweep(directory);
      return std::filesystem::is_regular_file(directory) ? cluster_status(directory, format, cluster_name)
                                                         : status(directory, format);
    };
  });
}

void add_result_commands(CLI::App& app, std::function<int()>& chosen) {
  add_results(app, chosen);
  add_best(app, chosen);
  add_dashboard(app, chosen);
  add_list(app, chosen);
  add_compare(app, chosen);
}

void add_exchange_commands(CLI::App& app, std::function<int()>& chosen) {
  add_export(app, chosen);
  add_what_if(app, chosen);
  add_import(app, chosen);
}

}  // namespace hypertune::inline v0::command
