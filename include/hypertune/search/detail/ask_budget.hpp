// AskBudget: limits the time of suggestions by the duration of the trials.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hypertune::inline v0::detail {

/// Suggestions are made one after the other while trials run side by side. All suggestions together may take as long as
/// all trials together on the available slots, and a single one at most 10 times the mean time per trial. Only recorded
/// durations and estimated costs of suggestions are used, never a clock, so that a replay makes the same decisions.
///
/// There is no limit while no duration is known, nor in runs of up to `few` trials, which are over in a second or two.
class AskBudget {
 public:
  static constexpr std::int64_t few = 500;  ///< trials

  AskBudget() = default;
  explicit AskBudget(const SearchContext& goal) : samples_(goal.samples), slots_(std::max(1, goal.parallelism)) {}

  void started(double estimate) {
    ++started_;
    if (limited()) spent_ += estimate;
  }
  void ended(Seconds elapsed) {
    if (!(elapsed > 0)) return;
    given_ += elapsed / slots_;
    ++known_;
  }
  bool limited() const { return known_ > 0 && std::max(samples_, started_) > few; }
  bool affords(double estimate) const {
    constexpr double longer = 10;
    return !limited() || (spent_ + estimate <= given_ && estimate <= longer * given_ / static_cast<double>(known_));
  }

 private:
  std::int64_t samples_ = 0, started_ = 0, known_ = 0;
  int slots_ = 1;
  Seconds given_ = 0, spent_ = 0;
};

/// The approximate time of a suggestion on one core.
inline Seconds gp_ask_seconds(std::size_t dimensions, std::size_t ended) {
  if (ended < 6) return 2e-5;  // from the design that fills the space
  return 5e-4 * (2 + static_cast<double>(dimensions)) *
         (1 + static_cast<double>(std::min<std::size_t>(ended, 250)) / 60);
}
inline Seconds tpe_ask_seconds(std::size_t dimensions, std::size_t ended) {
  return ended < 10 ? 2e-5 : 1e-4 * (1 + static_cast<double>(dimensions) / 5);
}

}  // namespace hypertune::inline v0::detail
