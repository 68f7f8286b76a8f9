// fmt formatters for the public types: definitions.
#pragma once

#include <hypertune/format.hpp>

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace hypertune::inline v0 {

std::string to_string(const Objective& objective) {
  return fmt::format("{} ({})", objective.metric, to_string(objective.mode));
}

std::string to_string(const Report& report) {
  std::string text;
  const auto out = std::back_inserter(text);
  if (report.step) fmt::format_to(out, "step {}: ", *report.step);
  const char* separator = "";
  for (const auto& [name, value] : report.metrics) {
    fmt::format_to(out, "{}{}={:.6g}", separator, name, value);
    separator = " ";
  }
  if (!report.attributes.empty()) fmt::format_to(out, "{}{}", separator, report.attributes);
  return text;
}

std::string to_string(const SearchSpace& space) { return space.describe(); }

std::string to_string(const Resources& resources) {
  std::string text;
  const auto out = std::back_inserter(text);
  const char* separator = "";
  const auto add = [&](const auto& amount, std::string_view name) {
    if (!(amount > 0)) return;
    fmt::format_to(out, "{}{} {}", separator, amount, name);
    separator = ", ";
  };
  add(resources.cpus, "cpus");
  add(resources.gpus, "gpus");
  add(resources.memory, "bytes of memory");
  for (const auto& [name, amount] : resources.custom) add(amount, name);
  return text.empty() ? "nothing" : text;
}

std::string to_string(const Host& host) { return fmt::format("{}: {}", host.name, host.total); }

std::string to_string(const Results& results) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} trial{}", results.size(), results.size() == 1 ? "" : "s");
  const char* separator = ": ";
  for (const auto state : {TrialState::pending, TrialState::running, TrialState::paused, TrialState::completed,
                           TrialState::stopped, TrialState::failed})
    if (const auto count = results.count(state); count > 0) {
      fmt::format_to(out, "{}{} {}", separator, count, to_string(state));
      separator = ", ";
    }
  const auto best = results.find_best();
  if (best) fmt::format_to(out, "; best: {}", *best);
  return text;
}

}  // namespace hypertune::inline v0
