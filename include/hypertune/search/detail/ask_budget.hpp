// AskBudget: limits the time of suggestions by the duration of the trials.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail {

/// Trials that take microseconds do not deserve a suggestion of milliseconds. Only recorded durations and estimated
/// costs of suggestions are used, never a clock, so that a replay makes the same decisions. There is no limit while no
/// duration is known.
///
/// In runs of up to `few` trials all suggestions together may take twice as long as all trials one after the other, and
/// a single one at most 4 times as long as the median trial (not the mean one: the first trial of a process, and some on
/// a busy machine, take a hundred times as long as they need). Quick ones are made whatever they cost.
///
/// In longer ones the cost adds up. Suggestions are made one after the other while trials run side by side. All
/// suggestions together may take as long as all trials together on the available slots, and a single one at most 10
/// times the mean time per trial. Quick ones may take `granted` more for each trial, which is little beside what it
/// costs to start the trial and to record it.
class AskBudget {
 public:
  static constexpr std::int64_t few = 500;  ///< trials
  static constexpr Seconds granted = 1e-4;
  /// Up to here a suggestion is quick: to hand it to another thread and back would take about as long.
  static constexpr Seconds quick = 2e-4;

  AskBudget() = default;
  explicit AskBudget(const SearchContext& goal) : samples_(goal.samples), slots_(std::max(1, goal.parallelism)) {}

  void started(double estimate) {
    ++started_;
    if (known_ > 0) spent_ += estimate;
  }
  void ended(Seconds elapsed) {
    if (!(elapsed > 0)) return;
    given_ += elapsed / slots_;
    ++known_;
    if (!many()) durations_.insert(std::upper_bound(durations_.begin(), durations_.end(), elapsed), elapsed);
  }
  bool affords(double estimate) const {
    if (known_ == 0) return true;
    if (many()) return spent_ + estimate <= given_ && estimate <= 10 * given_ / static_cast<double>(known_);
    return spent_ + estimate <= 2 * given_ * slots_ && estimate <= 4 * durations_[durations_.size() / 2];
  }
  /// The same for a suggestion of a searcher that is quick, but slower than drawing a point.
  bool affords_quick(double estimate) const {
    return known_ == 0 || !many() || spent_ + estimate <= given_ + granted * static_cast<double>(started_ + 1);
  }

 private:
  bool many() const { return std::max(samples_, started_) > few; }

  std::int64_t samples_ = 0, started_ = 0, known_ = 0;
  int slots_ = 1;
  Seconds given_ = 0, spent_ = 0;
  std::vector<Seconds> durations_;  // of the trials that ended, ascending
};

/// The approximate time of a suggestion on one core.
inline Seconds gp_ask_seconds(std::size_t dimensions, std::size_t ended) {
  if (ended < 6) return 2e-5;  // from the design that fills the space
  return 5e-4 * (2 + static_cast<double>(dimensions)) *
         (1 + static_cast<double>(std::min<std::size_t>(ended, 250)) / 60);
}
inline Seconds tpe_ask_seconds(std::size_t dimensions, std::size_t ended) {
  const double full = 6e-5 + 1.2e-5 * static_cast<double>(dimensions);
  return ended < 10 ? 2e-5 : ended < 100 ? full / 2 : full;
}

}  // namespace hypertune::inline v0::detail
