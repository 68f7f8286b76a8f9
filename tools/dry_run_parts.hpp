// Shared by the dry runs of trials with one and with several workers: see dry_run.hpp.
#pragma once

#include "dry_run.hpp"

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/random.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/tune/options.hpp>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

// Reads the lines appended to a file since the last call.
class Tail {
 public:
  explicit Tail(std::filesystem::path file) : file_(std::move(file)) {}
  template <class Take>
  void lines(bool all, const Take& take) {
    std::ifstream in(file_, std::ios::binary);
    in.seekg(at_);
    std::string line;
    while (std::getline(in, line)) {
      if (in.eof() && !all) break;  // an incomplete line
      at_ += static_cast<std::streamoff>(line.size()) + 1;
      take(line);
    }
  }

 private:
  std::filesystem::path file_;
  std::streamoff at_ = 0;
};

inline std::string report_text(const Report& report, int next) {
  std::string text = fmt::format("step {}:", report.step.value_or(next));
  for (const auto& [name, value] : report.metrics) text += fmt::format(" {}={}", name, value);
  for (const auto& [name, value] : report.attributes) text += fmt::format(" {}={}", name, to_string(value));
  return text;
}

inline std::string checkpoint_text(const CheckpointInfo& saved) {
  return fmt::format("{}, after {} step{}", saved.name, saved.steps, detail::plural(saved.steps));
}

// Complains of metrics that are needed, but missing or not finite.
inline void judge_report(const Sweep& sweep, const Report& report, std::vector<std::string>& wrong) {
  for (const auto& [metric, mode] : objectives_of(sweep.options)) {
    const double* value = find_metric(report.metrics, metric);
    if (value != nullptr && !std::isfinite(*value))
      wrong.push_back(fmt::format("'{}' is {}: a trial whose values stay so is the worst of all", metric, *value));
  }
  for (const auto& bound : sweep.options.constraints)
    if (find_metric(report.metrics, bound.metric) == nullptr)
      wrong.push_back(fmt::format("the report has no '{}', on which 'constraints' sets a bound", bound.metric));
}

inline bool has_objectives(const Sweep& sweep, const Metrics& metrics) {
  for (const auto& [metric, mode] : objectives_of(sweep.options))
    if (find_metric(metrics, metric) == nullptr) return false;
  return true;
}

// The configuration that the sweep would begin with, as far as it is known before the run.
inline Point dry_run_point(const Sweep& sweep) {
  const auto& options = sweep.options;
  if (!options.start_with.empty()) return sweep.space.point(options.start_with.front());
  Rng rng = derived_rng(*options.seed, {0});
  return sweep.space.sample(rng);
}

inline std::string shortened(std::string_view line) {
  constexpr std::size_t most = 400;
  return hypertune::detail::terminal::elide(hypertune::detail::terminal::printable(line), most);
}

// Shows a line of a trial's log. Lines from hypertune itself are errors.
inline void show_log_line(std::string_view line, DryRun& found, const DryRunSay& say) {
  constexpr std::string_view ours = "hypertune: ";
  const bool own = line.starts_with(ours);
  if (own) found.wrong.push_back(shortened(line.substr(ours.size())));
  say(own ? "hypertune" : "log", shortened(line));
}

// `over`: the time limit, if it has passed.
inline std::string why_no_report(const Sweep& sweep, std::optional<Seconds> over,
                                 const std::optional<std::string>& failure) {
  const auto objectives = objectives_of(sweep.options);
  std::string wanted;
  for (const auto& [metric, mode] : objectives) wanted += (wanted.empty() ? "'" : ", '") + metric + "'";
  if (over)
    return fmt::format(
        "no report of {} within {} s: print one JSON line a step, flushed, or give it longer by --timeout", wanted,
        *over);
  if (failure) return "the trial failed: " + shortened(*failure);
  return fmt::format(
      "the command ended without a report of {}: print a JSON line such as {{\"{}\": 0.5}}, or write an expression "
      "under 'trial.metrics'",
      wanted, objectives.front().metric);
}

}  // namespace hypertune::inline v0::command
