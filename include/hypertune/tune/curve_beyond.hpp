// CurveBeyond: extrapolates a curve that was cut by the gains of other trials.
#pragma once

#include <hypertune/tune/detail/recorded_curves.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What is assumed about a trial that trains beyond the end of its record. It is compared with those recorded trials
/// that went on from that step and whose result there was nearest to its own (a quarter of them, at least five).
enum class Beyond : std::uint8_t {
  stands_still,  ///< it gets no better
  usual,         ///< its gain is the median of their gains
  best,          ///< its gain is the largest of their gains
};

namespace detail {

/// Not thread-safe. Keeps a reference to the curves.
class CurveBeyond {
 public:
  /// `limit`: the number of steps after which the schedule completes a trial; 0: no limit.
  CurveBeyond(const RecordedCurves& curves, int limit);

  /// The step of the report after `step`: the next step at which any trial reported, or, after the last of these, as
  /// far on as the trial's last two reports are apart. nullopt: the program ends there, by itself or because nothing
  /// else would end it.
  std::optional<int> next_step(const RecordedTrial& trial, int step) const;

  struct Guess {
    std::vector<double> values;  ///< as in RecordedTrial
    bool compared = false;       ///< enough other trials have reached this step
  };
  /// The assumed values at `step`, which is beyond the last report of `trial`. The trial must have reported.
  Guess at(const RecordedTrial& trial, int step, Beyond beyond);

 private:
  static constexpr std::size_t fewest = 5;  // others to compare with

  struct Gain {
    double from = 0;  // the other trial's value at the step where this one was cut …
    double gain = 0;  // … and its gain from there to the later step; positive is better in either mode
  };
  const std::vector<Gain>& gains(std::size_t objective, int from, int to);

  const RecordedCurves& curves_;
  std::vector<bool> within_unit_;                                                   // by objective
  std::map<std::pair<std::pair<std::size_t, int>, int>, std::vector<Gain>> gains_;  // sorted by `from`
  bool ends_with_grid_;                                                             // no steps after the grid
};

}  // namespace detail

}  // namespace hypertune::inline v0
