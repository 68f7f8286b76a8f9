// KeptRuns: runs of ended trials that later trials can reuse.
#pragma once

#include <hypertune/execute/detail/attempt_run.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Attempts that have ended normally and whose runs can be reset, for executors that run trials in this process. So the
/// user's object is constructed once per place where trials run instead of once per trial. There are never more of them
/// than there were concurrent trials. Not thread-safe. Callers destroy what they take, because destructors are the
/// user's code.
class KeptRuns {
 public:
  void keep(AttemptRun attempt) {
    const Slot& slot = attempt.context().slot();
    runs_[{slot.host, slot.gpus}].push_back(std::move(attempt));
  }

  /// A run for a trial in `slot`, which had the same host and devices. Other runs that may still use one of these
  /// devices are returned in `in_the_way`: destroy them before the trial begins.
  std::optional<AttemptRun> take(const Slot& slot, std::vector<AttemptRun>& in_the_way) {
    std::optional<AttemptRun> taken;
    const Place place{slot.host, slot.gpus};
    if (const auto found = runs_.find(place); found != runs_.end() && !found->second.empty()) {
      taken = std::move(found->second.back());
      found->second.pop_back();
    }
    if (slot.gpus.empty()) return taken;
    for (auto& [other, runs] : runs_) {
      const bool shares = other.first == slot.host && other != place &&
                          std::find_first_of(other.second.begin(), other.second.end(), slot.gpus.begin(),
                                             slot.gpus.end()) != other.second.end();
      if (!shares) continue;
      std::move(runs.begin(), runs.end(), std::back_inserter(in_the_way));
      runs.clear();
    }
    return taken;
  }

  void clear() { runs_.clear(); }

 private:
  using Place = std::pair<int, std::vector<int>>;
  std::map<Place, std::vector<AttemptRun>> runs_;
};

}  // namespace hypertune::inline v0::detail
