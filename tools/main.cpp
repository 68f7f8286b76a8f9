// The command line of `hypertune`.
#include "authoring.hpp"
#include "cluster.hpp"
#include "commands.hpp"
#include "count_option.hpp"
#include "documents.hpp"
#include "kubernetes_driver.hpp"
#include "remote_trials.hpp"

#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/error.hpp>
#include <hypertune/ssh/runtime.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ht = hypertune;
namespace command = hypertune::command;

namespace {

int exit_code(ht::Errc code) {
  switch (code) {
    case ht::Errc::usage:
    case ht::Errc::space:
    case ht::Errc::input:
    case ht::Errc::corrupt:
    case ht::Errc::resources:
    case ht::Errc::busy: return command::exit_usage;
    default: return command::exit_failed;
  }
}

// Prints one line. Control characters are escaped, because it may quote any text of a file.
void complain(const char* what) { ht::detail::say("hypertune: " + ht::detail::terminal::printable(what)); }

int run_in_turn(const std::function<int()>& work) {
  for (;;) try {
      return work();
    } catch (const ht::Error& e) {
      if (e.code() != ht::Errc::busy || !command::wait_as_driver(e)) throw;
    }
}

bool nobody_reads() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// The exit code of a command whose output was written, or whose reader has gone away.
int written(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (nobody_reads()) return code;
  complain("the results could not be written to the standard output: is the disk full?");
  return command::exit_failed;
}

// An error for an unknown command that names it, which CLI11's own error does not.
std::optional<std::string> wrong_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    names.push_back(command->get_name());
  if (argc < 2) return fmt::format("name a command: {} (hypertune --help says what they do)", fmt::join(names, ", "));
  const std::string_view word = argv[1];
  const auto called = app.get_subcommands([&](const CLI::App* c) { return c->get_name() == word; });
  if (word.starts_with('-') || !called.empty()) return std::nullopt;
  if (word == "resume")
    return "there is no command 'resume': hypertune run SWEEP.yaml --resume goes on with its experiment";
  const auto meant = ht::detail::nearest(word, names);
  return fmt::format("there is no command '{}'{}", word,
                     meant.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                   : fmt::format(": did you mean '{}'?", meant));
}

// The same for an option.
std::optional<std::string> wrong_option(const CLI::App& app) {
  for (const auto* command : app.get_subcommands()) {
    std::vector<std::string> names;
    for (const auto* option : command->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& rest : command->remaining()) {
      const std::string word = rest.substr(0, rest.find('='));
      if (!word.starts_with('-'))
        return fmt::format("'hypertune {}' takes no further argument '{}'", command->get_name(), rest);
      const auto* own = command->get_option_no_throw("ARGS");
      return fmt::format("'hypertune {}' has no option '{}'{}{}", command->get_name(), word,
                         ht::detail::suggestion(word, names),
                         own == nullptr ? "" : "; options of the command that it runs stand after --");
    }
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `hypertune results DIR | head` must end quietly
  if (const auto code = ht::remote::run_agent_if_asked(argc, argv, command::program_from_description)) return *code;
  CLI::App app{"Hyperparameter tuning for any program: sweeps, early stopping, results."};
  app.set_version_flag("--version", HYPERTUNE_VERSION_TEXT);
  app.require_subcommand(1);
  std::function<int()> chosen;

  command::RunArguments run;
  auto* run_command = app.add_subcommand("run", "run a sweep, or go on with one");
  run_command->add_option("SWEEP", run.file, "the sweep's YAML file")->required();
  run_command->add_option("--executor", run.executor, "where trials run, in place of the file's")
      ->check(CLI::IsMember({"local", "ssh", "slurm", "kubernetes"}));
  run_command
      ->add_option("--set", run.set,
                   "key=value: a value in place of the file's (schedule.max_steps=27); may be repeated")
      ->allow_extra_args(false);
  run_command->add_option("--output", run.output, "the experiment's folder, in place of the file's");
  auto* resume = run_command->add_flag("--resume", run.resume, "go on with the experiment in the output folder");
  run_command->add_flag("--retry-failed", run.retry_failed, "with --resume: try trials again that have failed")
      ->needs(resume);
  run_command->add_option("--samples", run.samples, "trials in all, or with --resume +N: that many more");
  run_command->add_flag("--quiet", run.quiet, "no progress: warnings and the results only");
  run_command->add_flag("--plain", run.plain, "progress as plain lines, also on a terminal");
  auto* page = run_command->add_flag("--dashboard", run.dashboard, "serve its page while it runs, on loopback");
  run_command->add_option("--port", run.port, "with --dashboard: the page's port; 0: any free one")
      ->needs(page)
      ->capture_default_str();
  run_command->callback([&] { chosen = [&] { return command::run(run); }; });

  std::string directory, format = "table";
  bool in_cluster = false;
  std::vector<std::string> submitted_set;
  std::string submitted_volume;
  const auto add_in_cluster = [&](CLI::App* inspecting) {
    auto* flag = command::add_submitted(
        *inspecting, in_cluster, submitted_set,
        "DIR is the YAML file of a sweep that was submitted to Kubernetes: what its driver has recorded");
    inspecting->add_option("--volume", submitted_volume, "with --kubernetes: the volume claim of yours with the record")
        ->needs(flag);
  };
  const auto inspect_in_cluster = [&](const std::string& file, const std::vector<std::string>& words) {
    return command::inspect_on_kubernetes({file, submitted_set, submitted_volume}, words);
  };
  auto* status_command = app.add_subcommand("status", "how an experiment stands, or a cluster");
  status_command->add_option("DIR", directory, "the experiment's folder, or the cluster's YAML file")->required();
  status_command->add_option("--format", format)->check(CLI::IsMember({"table", "json"}));
  std::string cluster_name;
  status_command->add_option("-n,--cluster-name", cluster_name, "in place of the cluster file's");
  add_in_cluster(status_command);
  status_command->callback([&] {
    chosen = [&] {
      if (in_cluster) return inspect_in_cluster(directory, {"status", "experiment", "--format", format});
      command::refuse_sweep(directory);
      return std::filesystem::is_regular_file(directory) ? command::cluster_status(directory, format, cluster_name)
                                                         : command::status(directory, format);
    };
  });
  command::add_cluster_commands(app, chosen);

  command::ResultsArguments results;
  auto* results_command = app.add_subcommand("results", "all trials: a table, best first; json and csv in their order");
  results_command->add_option("DIR", results.directory, "the experiment's folder")->required();
  results_command->add_option("--format", results.format)
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  results_command->add_flag("--history", results.history, "with json: each report too");
  results_command->add_flag("--cost", results.cost,
                            "with json: an object of `trials` and `cost`, what the cluster's machines have cost");
  results_command->add_flag("--pareto", results.pareto, "only the trials that no other beats in every objective");
  results_command->add_flag("--importance", results.importance,
                            "how much of the variation each parameter explains, in place of the trials");
  results_command->add_option("--rows", results.rows, "at most this many rows of the table")->check(command::count());
  add_in_cluster(results_command);
  results_command->callback([&] {
    chosen = [&] {
      return in_cluster ? inspect_in_cluster(results.directory, command::words_of(results)) : command::results(results);
    };
  });

  auto* best_command = app.add_subcommand("best", "the best trial");
  best_command->add_option("DIR", directory, "the experiment's folder")->required();
  best_command->add_option("--format", format)->check(CLI::IsMember({"table", "json"}));
  add_in_cluster(best_command);
  best_command->callback([&] {
    chosen = [&] {
      return in_cluster ? inspect_in_cluster(directory, {"best", "experiment", "--format", format})
                        : command::best(directory, format);
    };
  });

  command::DashboardArguments dashboard;
  auto* dashboard_command = app.add_subcommand("dashboard", "a live page of experiments, in a browser");
  dashboard_command->add_option("DIR", dashboard.folders, "experiments' folders, or folders that have some below them")
      ->required();
  dashboard_command->add_option("--port", dashboard.port, "0: any free port")->capture_default_str();
  dashboard_command
      ->add_option("--listen", dashboard.listen, "this machine's address; beyond loopback with TLS and a token")
      ->capture_default_str();
  dashboard_command->add_option("--identity", dashboard.identity,
                                "beyond loopback: a file with a certificate and its key (PEM), in place of a new one");
  dashboard_command->add_option("--token", dashboard.token,
                                "beyond loopback: a file whose first line is the token, in place of a new one");
  dashboard_command->add_flag("--open", dashboard.open, "open it in this machine's browser");
  dashboard_command->callback([&] { chosen = [&] { return command::dashboard(dashboard); }; });

  std::string folder = "runs", list_format = "table";
  auto* list_command = app.add_subcommand("list", "the experiments in a folder and below it");
  list_command->add_option("DIR", folder, "where to look")->capture_default_str();
  list_command->add_option("--format", list_format)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  list_command->callback([&] { chosen = [&] { return command::list(folder, list_format); }; });

  command::CompareArguments compared;
  auto* compare_command =
      app.add_subcommand("compare", "experiments side by side, and whether their difference is more than chance");
  compare_command
      ->add_option("[GROUP=]DIR", compared.directories,
                   "the experiments' folders; repetitions of one thing have the same GROUP, or lie in one folder DIR")
      ->required();
  compare_command->add_option("--metric", compared.metric, "compare by this one, in place of the first objective");
  compare_command->add_option("--mode", compared.mode, "of a metric that is no objective: which is better")
      ->check(CLI::IsMember({"min", "max"}));
  compare_command->add_flag("--by-name", compared.by_name, "experiments that have the same name are repetitions");
  compare_command
      ->add_option("--at", compared.at,
                   "where repetitions are compared: at their ends, or when all had as many trials or reports, or as "
                   "much time")
      ->check(CLI::IsMember({"end", "trials", "reports", "time"}))
      ->capture_default_str();
  compare_command->add_option("--format", compared.format)
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  compare_command->callback([&] { chosen = [&] { return command::compare(compared); }; });

  command::ControlArguments control;
  const auto add_control = [&](const char* name, const char* what, const char* trials,
                               int (*act)(const command::ControlArguments&)) {
    auto* control_command = app.add_subcommand(name, what);
    control_command->add_option("DIR", control.directory, "the experiment's folder")->required();
    if (trials != nullptr) control_command->add_option("TRIAL", control.trials, trials);
    control_command->callback([&, act] { chosen = [&, act] { return act(control); }; });
    return control_command;
  };
  add_control("stop", "have an experiment that runs saved and left, or some of its trials ended",
              "trials to end for good; none: the whole, which --resume goes on with", command::stop)
      ->add_flag("--now", control.now, "of the whole: do not wait for the next reports");
  add_control("pause", "have trials of an experiment that runs saved, and wait",
              "the trials; none: all of them, and nothing starts", command::pause);
  add_control("continue", "let trials go on that were paused so", "the trials; none: all of them", command::proceed);
  add_control("resize", "have trials of an experiment that runs go on with another number of workers",
              "the trials; none: all of them", command::resize)
      ->add_option(
          "--workers", control.workers,
          "how many each is to have, within the sweep's `workers`, as far as there is room; 0: as many as there "
          "is room for")
      ->required()
      ->check(CLI::Range(0, 1000000));
  add_control("add", "one more configuration for an experiment that runs", nullptr, command::add)
      ->add_option("NAME=VALUE", control.params, "the parameters: lr=0.01 layers=3")
      ->required();

  add_control("note", "note something of an experiment, or of some of its trials, whether it runs or not", nullptr,
              command::note)
      ->add_option("[TRIAL…] NAME=VALUE…", control.params,
                   "the trials (none: the experiment), and what is noted: note='learning rate too high' good "
                   "(a name alone is a tag)")
      ->required();

  command::ExportArguments exported;
  auto* export_command = app.add_subcommand("export", "results for other programs");
  export_command->add_option("DIR", exported.directory, "the experiment's folder")->required();
  export_command
      ->add_option("--format", exported.format,
                   "csv, json, optuna (an SQLite storage), trace (for ui.perfetto.dev) or arrow (reports and trials)")
      ->check(CLI::IsMember({"table", "csv", "json", "optuna", "trace", "arrow"}))
      ->capture_default_str();
  export_command->add_option("-o,--output", exported.output,
                             "the file to write (arrow: the folder); standard output where that makes sense");
  auto* schedule_flag = export_command->add_flag(
      "--schedule", exported.schedule,
      "the best trial's configurations by step, as population based training found them (JSON, which is YAML, too)");
  std::string exported_trial;
  export_command->add_option("--trial", exported_trial, "… of this trial instead")->needs(schedule_flag);
  export_command->callback([&] {
    chosen = [&] {
      if (!exported_trial.empty()) exported.trial = command::trial_number(exported_trial);
      return command::export_results(exported);
    };
  });

  command::WhatIfArguments supposed;
  auto* what_if_command = app.add_subcommand(
      "what-if", "what an experiment would have found under another schedule, or with other workers");
  what_if_command->add_option("DIR", supposed.directory, "the experiment's folder")->required();
  what_if_command->add_option("--set", supposed.set, "schedule.KEY=VALUE: in place of the recorded one")
      ->allow_extra_args(false);
  what_if_command->add_option("--workers", supposed.workers, "trials at once; several numbers: one after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  what_if_command->add_flag("--shuffled", supposed.shuffled, "the trials come in another order, by --seed");
  what_if_command->add_option("--seed", supposed.seed, "of --shuffled")->capture_default_str();
  what_if_command->add_option("--format", supposed.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  what_if_command->callback([&] { chosen = [&] { return command::what_if(supposed); }; });

  command::ImportArguments imported;
  auto* import_command = app.add_subcommand("import", "an experiment of Optuna or Ray Tune as one of hypertune");
  import_command
      ->add_option("SOURCE", imported.source,
                   "an SQLite storage of Optuna, a file of its JournalStorage, or a folder of Ray Tune's results")
      ->required();
  import_command->add_option("-o,--output", imported.directory, "the new experiment's folder")->required();
  import_command->add_option("--study", imported.study, "of an Optuna storage with several");
  import_command->add_option("--metric", imported.metric, "what was tuned with Ray; what to call Optuna's value");
  import_command->add_option("--mode", imported.mode, "of Ray's metric")->check(CLI::IsMember({"min", "max"}));
  import_command->callback([&] { chosen = [&] { return command::import_from(imported); }; });

  command::StudyArguments study;
  auto* study_command = app.add_subcommand("study", "ask/tell over HTTP on loopback, for programs in other languages");
  study_command->add_option("STUDY", study.file, "the study's YAML file: a sweep without 'trial'")->required();
  study_command->add_option("--port", study.port, "0: any free port")->capture_default_str();
  study_command->add_option("--set", study.set, "key=value: a value in place of the file's")->allow_extra_args(false);
  study_command->add_option("--output", study.output, "the experiment's folder, in place of the file's");
  study_command->add_flag("--resume", study.resume, "go on with the study in the output folder");
  study_command->callback([&] { chosen = [&] { return command::study(study); }; });

  command::add_document_commands(app, chosen);
  command::add_authoring_commands(app, chosen);
  if (const auto wrong = wrong_command(app, argc, argv)) {
    complain(wrong->c_str());
    return command::exit_usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& e) {
    const auto wrong = wrong_option(app);
    complain(wrong ? wrong->c_str() : e.what());
    return command::exit_usage;
  } catch (const CLI::Success& e) {  // --help
    app.exit(e);
    return written(command::exit_done);
  } catch (const CLI::ParseError& e) {
    const auto parsed = app.get_subcommands();
    const std::string name = parsed.empty() ? "hypertune" : "hypertune " + parsed.front()->get_name();
    complain(fmt::format("'{}': {} ({} --help says more)", name, e.what(), name).c_str());
    return command::exit_usage;
  }
  try {
    const int code = written(run_in_turn(chosen));
    if (code == command::exit_failed || code == command::exit_usage) command::end_as_driver();
    return code;
  } catch (const ht::Error& e) {
    complain(e.what());
    // Other errors may be temporary (a lock of another process, a server that does not answer): the driver may be
    // started again.
    if (const int code = exit_code(e.code()); e.code() == ht::Errc::usage || e.code() == ht::Errc::input) {
      command::end_as_driver();
      return code;
    }
    return exit_code(e.code());
  } catch (const std::system_error& e) {
    if (nobody_reads()) return command::exit_done;  // a write to the standard output failed
    complain(e.what());
    return command::exit_failed;
  } catch (const std::exception& e) {
    complain(e.what());
    return command::exit_failed;
  }
}
