// fmt formatters for the public types. The formatters of Params and TrialResult are in the headers of these types.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <string_view>

template <>
struct fmt::formatter<hypertune::TrialState> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::Decision> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::Mode> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::FailureSource> : hypertune::detail::WordFormatter {};

/// "accuracy (max)"
template <>
struct fmt::formatter<hypertune::Objective> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::Objective& objective, Context& context) const {
    return fmt::format_to(context.out(), "{} ({})", objective.metric, hypertune::to_string(objective.mode));
  }
};

/// "accuracy=0.93 loss=0.2", with "step 3: " before it if the report names its step.
template <>
struct fmt::formatter<hypertune::Report> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::Report& report, Context& context) const {
    auto out = context.out();
    if (report.step) out = fmt::format_to(out, "step {}: ", *report.step);
    const char* separator = "";
    for (const auto& [name, value] : report.metrics) {
      out = fmt::format_to(out, "{}{}={:.6g}", separator, name, value);
      separator = " ";
    }
    return report.attributes.empty() ? out : fmt::format_to(out, "{}{}", separator, report.attributes);
  }
};

/// The text of SearchSpace::describe(): one line per dimension.
template <>
struct fmt::formatter<hypertune::SearchSpace> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::SearchSpace& space, Context& context) const {
    return fmt::formatter<std::string_view>::format(space.describe(), context);
  }
};

/// "2 cpus, 1 gpus, 1024 bytes of memory, 1 licence"; amounts of 0 are left out.
template <>
struct fmt::formatter<hypertune::Resources> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::Resources& resources, Context& context) const {
    auto out = context.out();
    const char* separator = "";
    const auto add = [&](const auto& amount, std::string_view name) {
      if (!(amount > 0)) return;
      out = fmt::format_to(out, "{}{} {}", separator, amount, name);
      separator = ", ";
    };
    add(resources.cpus, "cpus");
    add(resources.gpus, "gpus");
    add(resources.memory, "bytes of memory");
    for (const auto& [name, amount] : resources.custom) add(amount, name);
    return *separator == '\0' ? fmt::format_to(out, "nothing") : out;
  }
};

/// "host1: 8 cpus, 1 gpus"
template <>
struct fmt::formatter<hypertune::Host> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::Host& host, Context& context) const {
    return fmt::format_to(context.out(), "{}: {}", host.name, host.total);
  }
};

/// "30 trials: 12 completed, 17 stopped, 1 failed; best: trial 7  accuracy=0.985 at step 20  lr=0.01"
template <>
struct fmt::formatter<hypertune::Results> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const hypertune::Results& results, Context& context) const {
    using hypertune::TrialState;
    auto out = fmt::format_to(context.out(), "{} trial{}", results.size(), results.size() == 1 ? "" : "s");
    const char* separator = ": ";
    for (const auto state : {TrialState::pending, TrialState::running, TrialState::paused, TrialState::completed,
                             TrialState::stopped, TrialState::failed})
      if (const auto count = results.count(state); count > 0) {
        out = fmt::format_to(out, "{}{} {}", separator, count, hypertune::to_string(state));
        separator = ", ";
      }
    const auto best = results.find_best();
    return best ? fmt::format_to(out, "; best: {}", *best) : out;
  }
};
