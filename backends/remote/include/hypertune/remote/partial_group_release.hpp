// PartialGroupRelease: decides when workers that wait for others of their group are given back. No I/O, no clock.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/remote/worker_scaler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace hypertune::inline v0::remote {

/// If a trial needs several workers, those that have started are held for it until the others start. Two experiments on
/// a full cluster could each hold a part of what both need, forever. Therefore, workers held in vain for `patience`
/// seconds, and up to half as long again, are given back: all that have no trial, at once. They are requested again
/// after a pause, which grows with each attempt. Both times are random, so that two experiments do not stay in step.
/// The wait restarts when another worker starts, because the cluster may be growing. Not thread-safe.
class PartialGroupRelease {
 public:
  /// `group`: minimum number of workers of a trial; 1: nothing is ever given back. `slots`: how many of them fit on one
  /// host.
  PartialGroupRelease(int group, int slots, double patience, std::uint64_t seed)
      : group_(group), slots_(std::max(1, slots)), patience_(patience), random_(derived_rng(seed, {0x67726f75})) {}

  /// `launched`: whether each worker has been requested; `without_room`: those of them that wait for resources in use
  /// by others. Returns the workers to end.
  std::vector<int> step(double now, const WorkerStates& states, const std::vector<bool>& launched,
                        const std::set<int>& without_room) {
    const int busy = std::accumulate(states.running.begin(), states.running.end(), 0);
    if (busy > busy_) tries_ = 0;  // a trial has started
    busy_ = busy;
    int held = 0, room = 0, stuck = 0;
    std::vector<int> idle;
    for (std::size_t i = 0; i < launched.size(); ++i) {
      if (!launched[i]) continue;
      const int running = i < states.running.size() ? states.running[i] : 0;
      const bool up = i < states.up.size() && states.up[i];
      if (up) room += std::max(0, slots_ - running);
      if (running > 0) continue;
      idle.push_back(static_cast<int>(i));
      held += up ? 1 : 0;
      stuck += !up && without_room.contains(static_cast<int>(i)) ? 1 : 0;
    }
    if (group_ <= 1 || states.waiting == 0 || held == 0 || stuck == 0 || room >= group_) {
      since_.reset();
      return {};
    }
    if (!since_ || held > held_) {
      since_ = now;
      limit_ = patience_ * (1 + uniform01(random_) / 2);
    }
    held_ = held;
    if (now - *since_ < limit_) return {};
    since_.reset();
    constexpr double first = 10, growth = 2;
    const double most = std::min(patience_, first * std::pow(growth, std::min(tries_++, 30)));
    until_ = now + most * (0.5 + uniform01(random_) / 2);
    return idle;
  }
  /// Whether no worker may be requested now.
  bool pauses(double now) const { return now < until_; }

 private:
  int group_, slots_;
  double patience_;
  Rng random_;
  std::optional<double> since_ = {};  // start of the wait for the other workers
  double limit_ = 0, until_ = -1e9;
  int held_ = 0, busy_ = 0, tries_ = 0;
};

}  // namespace hypertune::inline v0::remote
