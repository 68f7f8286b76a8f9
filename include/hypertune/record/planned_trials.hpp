// PlannedTrials: how many trials an experiment is to have, as far as its records tell.
#pragma once

#include <hypertune/record/record.hpp>

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0::detail {

/// Fed with the records of both kinds, each trial once. `samples` alone is not the number: a person may add trials
/// beyond it, a resumption may ask for fewer than there are, and known results are trials that count as ended.
class PlannedTrials {
 public:
  void add(const record::ExperimentStarted& e) { samples_ = e.samples; }
  void add(const record::TrialCreated& e) { ++(e.known ? known_ : made_); }
  /// Of all that is counted by state; 0: not known.
  std::int64_t count() const { return samples_ > 0 ? known_ + std::max(samples_, made_) : 0; }

 private:
  std::int64_t samples_ = 0, made_ = 0, known_ = 0;
};

}  // namespace hypertune::inline v0::detail
