// StateCounts: how many trials are in each state.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hypertune::inline v0::detail {

class StateCounts {
 public:
  void add(TrialState state) { ++at(state); }
  void move(TrialState from, TrialState to) {
    --at(from);
    ++at(to);
  }
  std::int64_t operator[](TrialState state) const { return counts_[static_cast<std::size_t>(state)]; }
  /// Trials that have ended, for whatever reason.
  std::int64_t ended() const {
    return (*this)[TrialState::completed] + (*this)[TrialState::stopped] + (*this)[TrialState::failed];
  }

 private:
  std::int64_t& at(TrialState state) { return counts_[static_cast<std::size_t>(state)]; }
  std::array<std::int64_t, 6> counts_{};
};

}  // namespace hypertune::inline v0::detail
