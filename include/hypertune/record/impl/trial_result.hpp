// TrialResult: definitions.
#pragma once

#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/trial_result.hpp>

namespace hypertune::inline v0 {

bool operator==(const BestReport& a, const BestReport& b) {
  return a.metric == b.metric && a.step == b.step && a.value == b.value;
}

bool operator==(const ScheduleEntry& a, const ScheduleEntry& b) {
  return a.from_step == b.from_step && a.params == b.params && a.trial == b.trial;
}

TrialResult::TrialResult() = default;
TrialResult::TrialResult(const TrialResult& other) = default;
TrialResult::TrialResult(TrialResult&& other) noexcept = default;
TrialResult& TrialResult::operator=(const TrialResult& other) = default;
TrialResult& TrialResult::operator=(TrialResult&& other) noexcept = default;
TrialResult::~TrialResult() = default;

std::string to_string(const TrialResult& result) {
  using detail::terminal::printable;
  std::string text = detail::format("trial {}  ", result.trial);
  if (result.best)
    text +=
        detail::format("{}={:.6g} at step {}", printable(result.best->metric), result.best->value, result.best->step);
  else
    text += detail::format("{}, no result", to_string(result.state));
  return result.params.empty() ? text : text + "  " + printable(to_string(result.params));
}

}  // namespace hypertune::inline v0
