// What Results hold.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/record/detail/host_ledger.hpp>
#include <hypertune/record/detail/planned_trials.hpp>
#include <hypertune/record/detail/trial_data.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/trial/detail/state_counts.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

struct ResultsState {
  std::filesystem::path directory;
  std::int64_t judged_until = 0;  // constraints in records up to this one are ignored
  bool stale = false;             // some reports were judged by other constraints than the present ones
  ExperimentInfo info;
  PlannedTrials planned;                     // for info.planned
  Seconds earlier = 0, session_start = 0;    // for info.elapsed
  std::deque<TrialData> trials;              // by id; a deque, because a growing vector would need more memory
  std::map<TrialId, Attributes> attributes;  // of the trials that have any
  std::vector<std::string> names;
  StateCounts counts;
  std::array<std::int64_t, 3> failures{};
  Indirect<HostLedger> ledger;  // created with the first record
};

}  // namespace hypertune::inline v0::detail
