// CommandProgram: checks and compiles its options.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/command_run.hpp>
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/trial/detail/trial_file.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <algorithm>
#include <regex>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

inline std::regex compile(const std::string& pattern, std::string_view where, std::size_t groups) {
  try {
    std::regex regex(pattern, std::regex::ECMAScript | std::regex::optimize);
    if (regex.mark_count() < groups)
      fail(Errc::usage, "{}: the regular expression '{}' needs a group (…) around the number", where, pattern);
    return regex;
  } catch (const std::regex_error& e) {
    fail(Errc::usage, "{}: '{}' is no regular expression: {}", where, pattern, e.what());
  }
}

void check_pattern(const std::string& pattern, std::string_view where, std::size_t groups) {
  compile(pattern, where, groups);
}

inline std::vector<std::string> names_of(const SearchSpace& space) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < space.size(); ++i) names.push_back(space.name(i));
  return names;
}

inline CommandPlan plan_command(const std::vector<std::string>& names, CommandOptions options) {
  auto known = names;
  for (const auto& file : options.files) {
    if (const auto why = hypertune::detail::refused_trial_file(file.path); !why.empty())
      fail(Errc::usage, "the file '{}' of the trial: {}", file.path, why);
    if (std::find(known.begin(), known.end(), file.path) != known.end())
      fail(Errc::usage,
           "'{}' is the name of a parameter, or of another file of the trial: take another name for the file",
           file.path);
    known.push_back(file.path);
  }
  CommandLine line(options.command, known, options.groups);
  CommandPlan plan{std::move(line), {}, {}, {}, {}, std::move(options), {}};
  known = with_own_names(known);
  for (const auto& file : plan.options.files)
    plan.files.emplace_back(
        file.path, PlaceholderText(file.text, known, file.source.empty() ? file.path : file.source, file.style));
  if (plan.options.bind_to_slot) plan.gpus = usable_gpus();
  const auto require_free = [](const std::string& name) {
    if (const auto why = hypertune::detail::reserved_in_report_lines(name); !why.empty()) fail(Errc::usage, "{}", why);
  };
  for (const auto& name : plan.options.objectives) require_free(name);
  for (const auto& [name, pattern] : plan.options.metrics) require_free(name);
  const auto expression = [](const std::string& name, const std::string& pattern, const std::string& where) {
    return CommandPlan::Expression{name, compile(pattern, where, 1), surroundings_of_group(pattern), NumberUnit::none};
  };
  for (const auto& [name, what] : plan.options.measure) require_free(name);
  // The command need not print what is measured.
  const auto measured = [&](const std::string& name) {
    return std::any_of(plan.options.measure.begin(), plan.options.measure.end(),
                       [&](const auto& each) { return each.first == name; });
  };
  plan.tuned = plan.options.objectives;
  if (std::erase_if(plan.options.objectives, measured) > 0 && plan.options.objectives.empty()) {
    plan.only_measured = true;
    if (plan.options.report == ReportRule::each) plan.options.report = ReportRule::last;
  }
  for (const auto& [name, pattern] : plan.options.metrics)
    plan.metrics.push_back(expression(name, pattern, "metrics: " + name));
  for (const auto& [name, unit] : plan.options.units) {
    const auto metric =
        std::find_if(plan.metrics.begin(), plan.metrics.end(), [&](const auto& m) { return m.name == name; });
    if (metric == plan.metrics.end()) fail(Errc::usage, "'{}' has a unit, but no expression", name);
    const auto known = number_unit_named(unit);
    if (!known) fail(Errc::usage, "metrics: {}: there is no unit '{}': percent, seconds, bytes or count", name, unit);
    metric->unit = *known;
  }
  if (!plan.options.step.empty()) plan.step = expression("step", plan.options.step, "step");
  if (const auto first = plan.options.first_step; first && (*first < 0 || *first > 1))
    fail(Errc::usage, "the command's first_step is {}, but must be 0 or 1", *first);
  for (const auto& rule : plan.options.log_rules) plan.rules.push_back({compile(rule.match, "failures: log", 0), rule});
  plan.options.grace.give_to(plan.options.stop_grace);
  if (!(plan.options.stop_grace >= 0))
    fail(Errc::usage, "the command's stop_grace is {} s, but must be 0 or more", plan.options.stop_grace);
  if (!(plan.options.stopped_timeout > 0))
    fail(Errc::usage, "the command's stopped_timeout is {} s, but must be more than 0", plan.options.stopped_timeout);
  return plan;
}

}  // namespace detail

CommandProgram::CommandProgram(const SearchSpace& space, CommandOptions options)
    : CommandProgram(detail::names_of(space), std::move(options)) {}

CommandProgram::CommandProgram(const std::vector<std::string>& names, CommandOptions options)
    : plan_(std::make_shared<const detail::CommandPlan>(detail::plan_command(names, std::move(options)))) {}

std::unique_ptr<TrialRun> CommandProgram::begin(Context& context) const {
  return std::make_unique<detail::CommandRun>(*plan_, context);
}

double CommandProgram::stop_grace() const { return plan_->options.stop_grace; }

}  // namespace hypertune::inline v0::local
