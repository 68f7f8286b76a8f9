// KeptRuns: what trials have left behind for those that come after them.
#pragma once

#include <hypertune/execute/attempt_run.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Attempts that ended in order and whose runs can be reset, for executors that run them in this process: an object is
/// made once for each place where trials run, not once for each trial. There are never more of them than there were
/// trials at a time. Used by one thread at a time; what it gives out is destroyed by its caller, as that is user's
/// code.
class KeptRuns {
 public:
  void keep(AttemptRun attempt) {
    const Slot& slot = attempt.context().slot();
    runs_[{slot.host, slot.gpus}].push_back(std::move(attempt));
  }

  /// One for a trial in `slot`: it was on the same host and had the same devices. Others that may still hold something
  /// of these devices come as `in_the_way`: they are to end before it begins.
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
