// PlannedTrials: how many trials an experiment is to have, according to its records.
#pragma once

#include <hypertune/record/record.hpp>

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0::detail {

/// Takes the records of both kinds, each trial once. `samples` alone is not the number: the user may add trials, a
/// resumption may ask for fewer than there are, and known results count as ended trials.
class PlannedTrials {
 public:
  void add(const record::ExperimentStarted& e) { samples_ = e.samples; }
  void add(const record::TrialCreated& e) { ++(e.known ? known_ : made_); }
  /// The number of trials in all states together; 0: not known.
  std::int64_t count() const { return samples_ > 0 ? known_ + std::max(samples_, made_) : 0; }

 private:
  std::int64_t samples_ = 0, made_ = 0, known_ = 0;
};

}  // namespace hypertune::inline v0::detail
