// The command lines of the commands that run experiments, or act on those that run.
#include "command_lines.hpp"
#include "commands.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

void add_run_command(CLI::App& app, std::function<int()>& chosen) {
  const auto arguments = std::make_shared<RunArguments>();
  auto* command = app.add_subcommand("run", "run a sweep, or go on with one");
  command->add_option("SWEEP", arguments->file, "the sweep's YAML file")->required();
  command->add_option("--executor", arguments->executor, "where trials run, in place of the file's")
      ->check(CLI::IsMember({"local", "ssh", "slurm", "kubernetes"}));
  command
      ->add_option("--set", arguments->set,
                   "key=value: a value in place of the file's (schedule.max_steps=27); may be repeated")
      ->allow_extra_args(false);
  command->add_option("--output", arguments->output, "the experiment's folder, in place of the file's");
  auto* resume = command->add_flag("--resume", arguments->resume, "go on with the experiment in the output folder");
  command->add_flag("--retry-failed", arguments->retry_failed, "with --resume: try trials again that have failed")
      ->needs(resume);
  command->add_option("--samples", arguments->samples, "trials in all, or with --resume +N: that many more");
  command->add_flag("--quiet", arguments->quiet, "no progress: warnings and the results only");
  command->add_flag("--plain", arguments->plain, "progress as plain lines, also on a terminal");
  auto* page = command->add_flag("--dashboard", arguments->dashboard, "serve its page while it runs, on loopback");
  command->add_option("--port", arguments->port, "with --dashboard: the page's port; 0: any free one")
      ->needs(page)
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

void add_control_commands(CLI::App& app, std::function<int()>& chosen) {
  const auto arguments = std::make_shared<ControlArguments>();
  const auto add_control = [&](const char* name, const char* what, const char* trials,
                               int (*act)(const ControlArguments&)) {
    auto* command = app.add_subcommand(name, what);
    command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
    if (trials != nullptr) command->add_option("TRIAL", arguments->trials, trials);
    command->callback([arguments, act, &chosen] { chosen = [arguments, act] { return act(*arguments); }; });
    return command;
  };
  add_control("stop", "stop a running experiment after saving it, or end some of its trials",
              "trials to end for good; none: the whole, which --resume goes on with", stop)
      ->add_flag("--now", arguments->now, "of the whole: do not wait for the next reports");
  add_control("pause", "save trials of a running experiment, and let them wait",
              "the trials; none: all of them, and nothing starts", pause);
  add_control("continue", "continue paused trials", "the trials; none: all of them", proceed);
  add_control("resize", "continue trials of a running experiment with another number of workers",
              "the trials; none: all of them", resize)
      ->add_option(
          "--workers", arguments->workers,
          "how many each is to have, within the sweep's `workers`, as far as there is room; 0: as many as there "
          "is room for")
      ->required()
      ->check(CLI::Range(0, 1000000));
  add_control("add", "add a configuration to a running experiment", nullptr, add)
      ->add_option("NAME=VALUE", arguments->params, "the parameters: lr=0.01 layers=3")
      ->required();

  add_control("note", "attach a note to an experiment or to some of its trials, whether it runs or not", nullptr, note)
      ->add_option("[TRIAL…] NAME=VALUE…", arguments->params,
                   "the trials (none: the experiment), and what is noted: note='learning rate too high' good "
                   "(a name alone is a tag)")
      ->required();
}

void add_study_command(CLI::App& app, std::function<int()>& chosen) {
  const auto arguments = std::make_shared<StudyArguments>();
  auto* command = app.add_subcommand("study", "ask/tell over HTTP on loopback, for programs in other languages");
  command->add_option("STUDY", arguments->file, "the study's YAML file: a sweep without 'trial'")->required();
  command->add_option("--port", arguments->port, "0: any free port")->capture_default_str();
  command->add_option("--set", arguments->set, "key=value: a value in place of the file's")->allow_extra_args(false);
  command->add_option("--output", arguments->output, "the experiment's folder, in place of the file's");
  command->add_flag("--resume", arguments->resume, "go on with the study in the output folder");
  command->callback([arguments, &chosen] { chosen = [arguments] { return study(*arguments); }; });
}

}  // namespace hypertune::inline v0::command
