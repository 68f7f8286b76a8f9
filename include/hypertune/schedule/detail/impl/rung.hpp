// Rungs: definitions.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>

#include <cstdint>

namespace hypertune::inline v0::detail {

std::vector<int> rung_steps(int grace, int max, int reduction) {
  std::vector<int> steps;
  for (std::int64_t at = grace; at < max; at *= reduction) steps.push_back(static_cast<int>(at));
  return steps;
}

}  // namespace hypertune::inline v0::detail
