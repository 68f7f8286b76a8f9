// Report: definitions.
#pragma once

#include <hypertune/trial/report.hpp>

namespace hypertune::inline v0 {

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

}  // namespace hypertune::inline v0
