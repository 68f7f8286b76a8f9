// Report: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/report.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

Report::Report() noexcept = default;
Report::Report(Metrics values) : metrics(std::move(values)) {}
Report::Report(const Report& other) = default;
Report::Report(Report&& other) noexcept = default;
Report& Report::operator=(const Report& other) = default;
Report& Report::operator=(Report&& other) noexcept = default;
Report::~Report() = default;

Report report(std::initializer_list<std::pair<std::string, double>> metrics) { return Report(Metrics(metrics)); }

Report Report::at(int s) && {
  require_step(s);
  step = s;
  return std::move(*this);
}

Report Report::with(std::string name, Value value) && {
  detail::require_attribute_name(name);
  attributes.set(std::move(name), std::move(value));
  return std::move(*this);
}

void Report::require_step(int step) {
  if (step < 0 || step == std::numeric_limits<int>::max())
    fail(Errc::usage, "a report's step is {}, but must be a whole number from 0 to {}", step,
         std::numeric_limits<int>::max() - 1);
}

Report report(std::string name, double value) {
  Metrics metrics;
  metrics.emplace_back(std::move(name), value);
  return Report(std::move(metrics));
}

const double* find_metric(const Metrics& metrics, std::string_view name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& m) { return m.first == name; });
  return found == metrics.end() ? nullptr : &found->second;
}

}  // namespace hypertune::inline v0
