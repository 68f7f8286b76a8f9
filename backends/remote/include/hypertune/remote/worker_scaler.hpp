// WorkerScaler: decides how many workers there are, and which ones end. No I/O, no clock.
#pragma once

#include <hypertune/config/pool_size.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// How many trials with these needs fit on a worker at once; at least 1.
inline int slots_of(const Resources& worker, const Resources& each) {
  constexpr double most = 4096, slack = 1e-9;
  double slots = most;
  const auto bound = [&](double has, double needs) {
    if (needs > 0) slots = std::min(slots, std::floor(has / needs + slack));
  };
  bound(worker.cpus, each.cpus);
  bound(worker.gpus, each.gpus);
  if (worker.memory > 0) bound(static_cast<double>(worker.memory), static_cast<double>(each.memory));
  if (slots >= most) slots = std::max(1.0, std::floor(worker.cpus));  // the trials need none of the counted resources
  return static_cast<int>(std::max(1.0, slots));
}

/// The state of the workers and of the queue of trials.
struct WorkerStates {
  int waiting = 0;                ///< trials that wait for a place
  std::vector<int> running = {};  ///< trials on each worker
  std::vector<bool> up = {};      ///< whether each worker's agent is connected

  /// No trial runs or waits.
  bool over() const {
    return waiting == 0 && std::all_of(running.begin(), running.end(), [](int trials) { return trials == 0; });
  }
};

/// Keeps as many workers as the trials need; workers are numbered from 0. A worker without a trial is kept for `idle_timeout`
/// seconds, because another trial may come. If decisions must not depend on the times at which workers start (`all`),
/// there is always the maximum number of workers.
class WorkerScaler {
 public:
  struct Orders {
    std::vector<int> launch = {}, end_workers = {};
  };

  WorkerScaler(PoolSize bounds, int slots, double idle, bool all)
      : bounds_(bounds),
        slots_(std::max(1, slots)),
        idle_(idle),
        all_(all),
        workers_(static_cast<std::size_t>(bounds.max)) {}

  bool launched(int worker) const { return workers_[static_cast<std::size_t>(worker)].launched; }

  /// The worker has ended by itself; it may be requested again.
  void ended(int worker) { workers_[static_cast<std::size_t>(worker)] = {}; }

  Orders step(double now, const WorkerStates& states) {
    Orders orders;
    const int wanted = wanted_for(states);
    int there =
        static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w.launched; }));
    for (std::size_t i = 0; i < workers_.size() && there < wanted; ++i)
      if (!std::exchange(workers_[i].launched, true)) {
        orders.launch.push_back(static_cast<int>(i));
        ++there;
      }
    // Workers that have not started end first: they have only a place in the queue to lose.
    int spare = there - wanted;
    for (const bool up : {false, true})
      for (std::size_t i = workers_.size(); i-- > 0;) {
        auto& worker = workers_[i];
        if (!worker.launched || up_of(states, i) != up) continue;
        if (running_of(states, i) > 0 || spare <= 0) {
          worker.spare_since.reset();
          continue;
        }
        --spare;
        if (!worker.spare_since) worker.spare_since = now;
        if (now - *worker.spare_since < idle_) continue;
        worker = {};
        orders.end_workers.push_back(static_cast<int>(i));
      }
    return orders;
  }

 private:
  struct Worker {
    bool launched = false;
    std::optional<double> spare_since = {};
  };

  static int running_of(const WorkerStates& states, std::size_t i) {
    return i < states.running.size() ? states.running[i] : 0;
  }
  static bool up_of(const WorkerStates& states, std::size_t i) { return i < states.up.size() && states.up[i]; }

  int wanted_for(const WorkerStates& states) const {
    if (all_) return bounds_.max;
    int busy = 0, room = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (const int running = running_of(states, i); workers_[i].launched && running > 0) {
        ++busy;
        room += std::max(0, slots_ - running);
      }
    const int without = std::max(0, states.waiting - room);
    const int more = without / slots_ + (without % slots_ > 0 ? 1 : 0);
    return std::clamp(more > bounds_.max - busy ? bounds_.max : busy + more, bounds_.min, bounds_.max);
  }

  PoolSize bounds_;
  int slots_;
  double idle_;
  bool all_;
  std::vector<Worker> workers_;
};

}  // namespace hypertune::inline v0::remote
