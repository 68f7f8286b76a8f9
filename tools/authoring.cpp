#include "authoring.hpp"

#include "check.hpp"
#include "commands.hpp"
#include "completion.hpp"
#include "init.hpp"
#include "man.hpp"
#include "schema.hpp"

#include <cstdio>
#include <memory>
#include <string>

namespace hypertune::inline v0::command {

namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return exit_done;
}

}  // namespace

void add_authoring_commands(CLI::App& app, std::function<int()>& chosen) {
  const auto checked = std::make_shared<CheckArguments>();
  auto* check_command = app.add_subcommand("check", "validate a file without running it");
  check_command->add_option("FILE", checked->file, "the YAML file of a sweep, a study or a cluster")->required();
  check_command->add_option("--set", checked->set, "key=value: a value in place of the file's; may be repeated")
      ->allow_extra_args(false);
  auto* run = check_command->add_flag("--run", checked->run,
                                      "run one trial to its first report here, keep nothing, and show what is read");
  check_command->add_option("--timeout", checked->timeout, "of that trial")->needs(run)->capture_default_str();
  check_command->callback([&chosen, checked] { chosen = [checked] { return check(*checked); }; });

  const auto begun = std::make_shared<InitArguments>();
  auto* init_command = app.add_subcommand("init", "write a sweep's file for a command: init -- COMMAND ARGS…");
  init_command->add_option("-o,--output", begun->output, "the file to write")->capture_default_str();
  init_command->add_flag("--force", begun->force, "write over a file that is there");
  auto* probe = init_command->add_flag("--probe", begun->probe,
                                       "run the command, with --help and as it stands, to see its options and reports");
  init_command->add_option("--timeout", begun->timeout, "of each of these two")->needs(probe)->capture_default_str();
  init_command->add_option("COMMAND", begun->command, "after --: the program with its arguments, as you would run it")
      ->required();
  init_command->callback([&chosen, begun] { chosen = [begun] { return init(*begun); }; });

  const auto kind = std::make_shared<std::string>();
  auto* schema_command = app.add_subcommand("schema", "JSON Schema of the YAML files, for editors");
  schema_command->add_option("FILE", *kind, "which file: sweep, cluster or study")
      ->required()
      ->check(CLI::IsMember({"sweep", "cluster", "study"}));
  schema_command->callback([&chosen, kind] { chosen = [kind] { return print(schema_of(*kind)); }; });

  const auto shell = std::make_shared<std::string>();
  auto* completion_command =
      app.add_subcommand("completion", "a script that completes this command's words in a shell");
  completion_command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion_command->callback(
      [&app, &chosen, shell] { chosen = [&app, shell] { return print(completion_of(app, *shell)); }; });

  auto* man_command = app.add_subcommand("man", "this command's manual page: hypertune man | man -l -");
  man_command->callback([&app, &chosen] { chosen = [&app] { return print(man_page(app)); }; });
}

}  // namespace hypertune::inline v0::command
