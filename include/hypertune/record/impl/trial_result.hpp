// TrialResult: definitions.
#pragma once

#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/trial_result.hpp>

namespace hypertune::inline v0 {

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
