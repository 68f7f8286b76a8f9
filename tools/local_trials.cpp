#include "local_trials.hpp"

#include "shell_words.hpp"

#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/program_file.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

// Refuses a shell command line instead of a list of words: all of it would be used as the program's name.
void require_words(const Sweep& sweep) {
  const std::string& program = sweep.trial->command.front();
  std::error_code ignored;
  if (sweep.trial->command.size() > 1 || program.find(' ') == std::string::npos ||
      std::filesystem::exists(program, ignored))
    return;
  std::vector<std::string> words = words_of(program);
  for (auto& word : words)
    if (word.find_first_of("{}[],:#&*!|>'\"%@`") != std::string::npos) word = '"' + word + '"';
  fail(Errc::usage, "{}: 'trial.command' is a list of words: write [{}], not '{}'", sweep.file.string(),
       fmt::join(words, ", "), program);
}

// Refuses a program that does not exist, because every trial would fail.
void require_program(const Sweep& sweep) {
  const std::string& program = sweep.trial->command.front();
  if (program.find('{') != std::string::npos || sweep.trial->environment.contains("PATH")) return;
  if (!process::program_file(program).empty()) return;
  std::error_code ignored;
  if (program.find('/') != std::string::npos && std::filesystem::is_directory(program, ignored))
    fail(Errc::usage, "{}: 'trial.command': '{}' is a folder, no program", sweep.file.string(), program);
  fail(Errc::usage, "{}: 'trial.command': there is no program '{}'{}", sweep.file.string(), program,
       std::filesystem::is_regular_file(program, ignored)
           ? " that may be run: chmod +x it, or name its interpreter before it"
           : "");
}

// Checks placeholders and expressions as the program will, and adds their line in the file to errors.
void require_sound_texts(const Sweep& sweep) {
  const TrialSpec& trial = *sweep.trial;
  const auto at = [](const std::string& where, const auto& check) {
    try {
      check();
    } catch (const Error& e) { fail(Errc::input, "{}: {}", where, e.what()); }
  };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sweep.space.size(); ++i) names.push_back(sweep.space.name(i));
  for (std::size_t i = 0; i < trial.command_places.size() && i < trial.command.size(); ++i)
    at(trial.command_places[i], [&] { local::CommandLine({"program", trial.command[i]}, names); });
  for (const auto& [name, where] : trial.metric_places)
    at(where,
       [&] { local::detail::check_pattern(trial.metrics.at(name), fmt::format("'trial.metrics.{}'", name), 1); });
  for (const auto& rule : trial.log_rules)
    at(rule.where, [&] { local::detail::check_pattern(rule.match, "'failures.log'", 0); });
}

}  // namespace

std::shared_ptr<const Program> program_of(const Sweep& sweep, bool here) {
  require_words(sweep);
  require_sound_texts(sweep);
  if (here) require_program(sweep);
  local::CommandOptions options;
  options.command = sweep.trial->command;
  options.metrics = sweep.trial->metrics;
  options.environment = sweep.trial->environment;
  options.grace = sweep.trial->grace;
  // Shorter than the hang limit, so that rank 0, which waits for it, is not taken for hung.
  if (const double hang = sweep.options.hang_limit; hang > 0)
    options.stop_limit = std::min(options.stop_limit, hang / 2);
  for (const auto& objective : objectives_of(sweep.options)) options.objectives.push_back(objective.metric);
  options.bind_to_slot = sweep.executor.workers == "threads";
  for (const auto& rule : sweep.trial->log_rules)
    options.log_rules.push_back({.match = rule.match, .exclude_host = rule.exclude_host, .no_retry = rule.no_retry});
  return std::make_shared<local::CommandProgram>(sweep.space, std::move(options));
}

AnyExecutor executor_of(const Sweep& sweep) {
  const auto& text = sweep.executor;
  if (text.workers == "threads")
    return threads({.cpus = text.cpus,
                    .gpus = text.gpus < 0 ? static_cast<double>(local::usable_gpus().size()) : text.gpus,
                    .custom = text.custom,
                    .pin = text.cpus <= static_cast<double>(local::usable_cores().size()),
                    .max_parked = 64});
  return processes({.cpus = text.cpus,
                    .gpus = text.gpus,
                    .memory = text.memory,
                    .custom = text.custom,
                    .grace = sweep.trial->grace});
}

}  // namespace hypertune::inline v0::command
