// FailureCounts: attempts of one trial that failed, by whose doing.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <array>
#include <cstddef>

namespace hypertune::inline v0 {

struct FailureCounts {
  std::array<int, 3> failures{};  ///< attempts that failed, by FailureSource
  int lost = 0;                   ///< of these, those whose host was lost

  /// Attempts whose failure counts against the trial (max_failures): by the user's code, or by the infrastructure while
  /// its host was there. A preemption, a lost host or a killed driver is no failure of a trial.
  int failure_count() const {
    return failures_by(FailureSource::user) + failures_by(FailureSource::infrastructure) - lost;
  }
  int failures_by(FailureSource source) const { return failures[static_cast<std::size_t>(source)]; }
};

}  // namespace hypertune::inline v0
