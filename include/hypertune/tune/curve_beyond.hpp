// CurveBeyond: what a curve that was cut may have come to, by what others gained.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/tune/recorded_curves.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What is assumed of a trial that trains on beyond its record, in comparison with recorded trials that went on from
/// there: those whose result after as many steps was nearest to its own (a quarter of them, five at least).
enum class Beyond : std::uint8_t {
  stands_still,  ///< it gets no better
  usual,         ///< it gains the median of what these gained
  best,          ///< it gains as much as the one of these that gained most
};

namespace detail {

/// Used by one thread at a time; refers to the curves.
class CurveBeyond {
 public:
  /// `limit`: the steps after which the schedule completes a trial; 0: it has no such limit.
  CurveBeyond(const RecordedCurves& curves, int limit);

  /// The step of the report that follows `step`: the next one that any trial reported at, or as far on as the trial's
  /// last two reports are apart. nullopt: the program ends there, by itself or because nothing else would end it.
  std::optional<int> next_step(const RecordedTrial& trial, int step) const;

  struct Guess {
    std::vector<double> values;  ///< as in RecordedTrial
    bool compared = false;       ///< enough others have gone on so far
  };
  /// At `step`, which is beyond the trial's last report. `trial` has reported.
  Guess at(const RecordedTrial& trial, int step, Beyond beyond);

 private:
  static constexpr std::size_t fewest = 5;  // others to compare with

  struct Gain {
    double from = 0;  // the value where the other one was cut …
    double gain = 0;  // … and what it had gained at the later step; more is better whatever the mode
  };
  const std::vector<Gain>& gains(std::size_t objective, int from, int to);

  const RecordedCurves& curves_;
  std::vector<bool> within_unit_;                                                   // by objective
  std::map<std::pair<std::pair<std::size_t, int>, int>, std::vector<Gain>> gains_;  // sorted by `from`
  bool ends_with_grid_;                                                             // the program, at its last step
};

}  // namespace detail

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/curve_beyond.hpp>
#endif
