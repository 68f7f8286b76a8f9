// Repeated runs: definitions.
#pragma once

#include <hypertune/local/repetitions.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/random.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

inline double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

inline double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1 || values[half - 1] == values[half]) return values[half];
  return values[half - 1] / 2 + values[half] / 2;
}

inline double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

inline double combined_value(std::vector<double> values, RepeatRule rule, const Mode* mode) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (std::any_of(values.begin(), values.end(), is_nan)) {  // it is the worst, where that can be said
    if (mode == nullptr || rule == RepeatRule::mean) return none;
    std::replace_if(values.begin(), values.end(), is_nan, *mode == Mode::minimize ? infinity : -infinity);
    const double value = combined_value(std::move(values), rule, mode);
    return std::isfinite(value) ? value : none;
  }
  if (rule == RepeatRule::worst)
    rule = mode == nullptr ? RepeatRule::median : *mode == Mode::minimize ? RepeatRule::max : RepeatRule::min;
  switch (rule) {
    case RepeatRule::mean: return mean_of(values);
    case RepeatRule::min: return *std::min_element(values.begin(), values.end());
    case RepeatRule::max: return *std::max_element(values.begin(), values.end());
    default: return median_of(values);
  }
}

}  // namespace detail

Report combined(const std::vector<Report>& runs, RepeatRule rule, const std::map<std::string, Mode>& modes,
                const std::vector<std::string>& spread) {
  Report report;
  Metrics spreads;
  for (const auto& [name, last] : runs.back().metrics) {
    std::vector<double> values;
    for (const auto& run : runs)
      if (const double* value = find_metric(run.metrics, name)) values.push_back(*value);
    if (values.size() < runs.size() || find_metric(report.metrics, name) != nullptr) continue;
    const auto mode = modes.find(name);
    report.metrics.emplace_back(name,
                                detail::combined_value(values, rule, mode == modes.end() ? nullptr : &mode->second));
    if (runs.size() > 1 && std::find(spread.begin(), spread.end(), name) != spread.end() &&
        find_metric(runs.back().metrics, name + "_std") == nullptr)
      spreads.emplace_back(name + "_std", detail::deviation_of(values));
  }
  report.metrics.insert(report.metrics.end(), spreads.begin(), spreads.end());
  report.attributes = runs.back().attributes;
  return report;
}

std::uint64_t seed_of_repetition(std::uint64_t seed, int repetition) {
  return repetition == 0 ? seed : derived_rng(seed, {static_cast<std::uint64_t>(repetition)})();
}

std::vector<Report> RepetitionFile::read() const {
  std::vector<Report> runs;
  std::ifstream in(file_, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || line != configuration_) return runs;
  while (std::getline(in, line)) {
    auto parsed = parse_report_line(line);
    if (!parsed || parsed->metrics.empty()) break;
    Report run(std::move(parsed->metrics));
    run.step = parsed->step;
    runs.push_back(std::move(run));
  }
  return runs;
}

void RepetitionFile::write(const std::vector<Report>& runs) const {
  std::string text = configuration_ + '\n';
  for (const auto& run : runs) {
    hypertune::detail::JsonWriter line;
    line.begin_object();
    if (run.step) line.member("step", *run.step);
    for (const auto& [name, value] : run.metrics) line.member(name, value);
    text += line.end_object().white("\n").take();
  }
  const auto whole = std::filesystem::path(file_).concat(".new");
  std::error_code ignored;
  {
    std::ofstream out(whole, std::ios::binary | std::ios::trunc);
    if (!(out << text).flush()) return;
  }
  std::filesystem::rename(whole, file_, ignored);
}

}  // namespace hypertune::inline v0::local
