// FailureCounts: the failed attempts of one trial, by source.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <array>
#include <cstddef>

namespace hypertune::inline v0 {

struct FailureCounts {
  std::array<int, 3> failures{};  ///< attempts that failed, by FailureSource
  int lost = 0;                   ///< attempts among these whose host was lost

  /// The failures that count against the trial (max_retries): those of the user's code, and those of the
  /// infrastructure unless the host was lost. A preemption, a lost host or a killed driver is not a failure of the
  /// trial.
  int failure_count() const {
    return failures_by(FailureSource::user) + failures_by(FailureSource::infrastructure) - lost;
  }
  int failures_by(FailureSource source) const { return failures[static_cast<std::size_t>(source)]; }
};

}  // namespace hypertune::inline v0
