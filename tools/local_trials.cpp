#include "local_trials.hpp"

#include "remote_trials.hpp"
#include "shell_words.hpp"

#include <hypertune/detail/read_file.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/program_file.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
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

std::vector<std::string> names_in(const Sweep& sweep) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sweep.space.size(); ++i) names.push_back(sweep.space.name(i));
  for (const auto& file : sweep.trial->files) names.push_back(file.path);
  return names;
}

local::CommandLine::Values values_of(const Sweep& sweep, const Params& params) {
  local::CommandLine::Values values;
  for (const auto& [name, value] : params) values[name] = value;
  values.emplace("directory", "DIRECTORY");
  for (const auto& name : local::detail::with_own_names({}))
    values.emplace(name, name == "trial" || name == "step" ? "0" : "");
  for (const auto& file : sweep.trial->files) values.emplace(file.path, "DIRECTORY/" + file.path);
  return values;
}

local::PlaceholderStyle style_of(const TrialFileOptions& file) {
  return {.open = file.open, .close = file.close, .strict = false};
}

std::string source_of(const TrialFileOptions& file) { return file.from.empty() ? "'" + file.path + "'" : file.from; }

// Checks placeholders and expressions as the program will, and adds their line in the file to errors.
void require_sound_texts(const Sweep& sweep) {
  const TrialOptions& trial = *sweep.trial;
  const auto at = [](const std::string& where, const auto& check) {
    try {
      check();
    } catch (const Error& e) { fail(Errc::input, "{}: {}", where, e.what()); }
  };
  const auto names = names_in(sweep);
  std::vector<local::CommandLine::Values> examples;  // of values that may not fit their placeholders
  for (const auto& params : some_configurations(sweep, 16)) examples.push_back(values_of(sweep, params));
  for (std::size_t i = 0; i < trial.command_places.size() && i < trial.command.size(); ++i)
    at(trial.command_places[i], [&] {
      const local::CommandLine line({"program", trial.command[i]}, names);
      for (const auto& values : examples) line(values);
    });
  for (const auto& file : trial.files)
    at(file.where, [&] {
      const local::PlaceholderText text(template_text(sweep, file), local::detail::with_own_names(names),
                                        source_of(file), style_of(file));
      for (const auto& values : examples) text.without_inactive_lines(values);
    });
  for (const auto& [name, where] : trial.metric_places)
    at(where,
       [&] { local::detail::check_pattern(trial.metrics.at(name), fmt::format("'trial.metrics.{}'", name), 1); });
  if (!trial.step.empty()) at(trial.step_place, [&] { local::detail::check_pattern(trial.step, "'trial.step'", 1); });
  for (const auto& rule : trial.log_rules)
    at(rule.where, [&] { local::detail::check_pattern(rule.match, "'failures.log'", 0); });
}

}  // namespace

std::vector<Params> some_configurations(const Sweep& sweep, int number) {
  std::vector<Params> all;
  for (const auto& params : sweep.options.start_with) all.push_back(sweep.space.params(sweep.space.point(params)));
  for (int i = 0; static_cast<int>(all.size()) < number; ++i) {
    Rng rng = derived_rng(*sweep.options.seed, {static_cast<std::uint64_t>(i)});
    all.push_back(sweep.space.params(sweep.space.sample(rng)));
  }
  return all;
}

std::string template_text(const Sweep& sweep, const TrialFileOptions& file) {
  if (file.text) return *file.text;
  constexpr std::uintmax_t most = std::uintmax_t{4} << 20U;  // it is sent to each host
  const auto path = found_from(sweep, file.from);
  std::error_code ignored;
  const auto refuse = [&](const std::string& why) { fail(Errc::input, "'trial.files.{}': {}", file.path, why); };
  if (!std::filesystem::is_regular_file(path, ignored)) refuse(fmt::format("there is no file '{}'", file.from));
  if (std::filesystem::file_size(path, ignored) > most)
    refuse(fmt::format("'{}' is larger than 4 MiB, the most that a template may have", file.from));
  auto text = detail::read_file(path);
  if (!text) refuse(fmt::format("'{}' cannot be read", file.from));
  return *text;
}

std::vector<std::string> arguments_of(const Sweep& sweep, const Params& params) {
  return local::CommandLine(sweep.trial->command, names_in(sweep),
                            sweep.trial->command_groups)(values_of(sweep, params));
}

std::vector<std::string> names_used(const Sweep& sweep) {
  std::vector<std::string> used;
  const auto names = local::detail::with_own_names(names_in(sweep));
  const auto look = [&](const local::PlaceholderText& text) {
    for (const auto& [name, choice] : text.names()) used.push_back(name);
  };
  for (const auto& word : sweep.trial->command) look(local::PlaceholderText(word, names, ""));
  for (const auto& file : sweep.trial->files)
    look(local::PlaceholderText(template_text(sweep, file), names, source_of(file), style_of(file)));
  return used;
}

std::vector<std::pair<std::string, std::string>> options_left_alone(const Sweep& sweep) {
  auto all = local::CommandLine(sweep.trial->command, names_in(sweep), sweep.trial->command_groups).separate_options();
  std::erase_if(all, [&](const auto& each) {
    for (std::size_t d = 0; d < sweep.space.size(); ++d)
      if (sweep.space.name(d) == each.first) return !sweep.space.conditional(d);
    return true;
  });
  return all;
}

std::shared_ptr<const Program> program_of(const Sweep& sweep, bool here) {
  require_words(sweep);
  require_sound_texts(sweep);
  if (here) require_program(sweep);
  local::CommandOptions options;
  options.command = sweep.trial->command;
  options.groups = sweep.trial->command_groups;
  for (const auto& file : sweep.trial->files)
    options.files.push_back(
        {.path = file.path, .text = template_text(sweep, file), .style = style_of(file), .source = source_of(file)});
  options.metrics = sweep.trial->metrics;
  options.units = sweep.trial->units;
  options.step = sweep.trial->step;
  options.first_step = sweep.trial->first_step;
  options.steps_of_attempt = sweep.trial->steps_of_attempt;
  options.measure = sweep.trial->measure;
  options.environment = sweep.trial->environment;
  options.stop_grace = sweep.trial->stop_grace;
  options.output = sweep.trial->output;
  options.success = sweep.trial->success;
  options.report = sweep.trial->report;
  options.repeat = sweep.trial->repeat;
  options.ordered = sweep.options.ordered;
  // Shorter than the hang limit, so that rank 0, which waits for it, is not taken for hung.
  if (const double hang = sweep.options.hang_timeout; hang > 0)
    options.stopped_timeout = std::min(options.stopped_timeout, hang / 2);
  for (const auto& objective : objectives_of(sweep.options)) {
    options.objectives.push_back(objective.metric);
    options.modes[objective.metric] = objective.mode;
  }
  for (const auto& bound : sweep.options.constraints) options.modes.emplace(bound.metric, bound.side);
  options.bind_to_slot = sweep.executor.isolation == "thread";
  for (const auto& rule : sweep.trial->log_rules)
    options.log_rules.push_back({.match = rule.match, .exclude_host = rule.exclude_host, .no_retry = rule.no_retry});
  return std::make_shared<local::CommandProgram>(sweep.space, std::move(options));
}

AnyExecutor executor_of(const Sweep& sweep) {
  const auto& text = sweep.executor;
  if (text.isolation == "thread")
    return threads({.cpus = text.cpus,
                    .gpus = text.gpus < 0 ? static_cast<double>(local::usable_gpus().size()) : text.gpus,
                    .custom = text.custom,
                    .pin = text.cpus <= static_cast<double>(local::usable_cores().size()),
                    .max_parked = 64});
  return processes({.cpus = text.cpus,
                    .gpus = text.gpus,
                    .memory = text.memory,
                    .custom = text.custom,
                    .stop_grace = sweep.trial->stop_grace});
}

}  // namespace hypertune::inline v0::command
