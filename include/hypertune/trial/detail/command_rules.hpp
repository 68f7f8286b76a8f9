// How the runs of an external command make the reports of a trial: for YAML and for the executors.
#pragma once

#include <cstdint>

namespace hypertune::inline v0 {

/// What a command's standard output is.
enum class CommandOutput : std::uint8_t {
  pipe,  ///< many programs then print in blocks of some KiB, or all at their end
  line,  ///< a pseudo-terminal: C, C++, Python and others then print line by line
};

/// Which reports of a command are the trial's.
enum class ReportRule : std::uint8_t {
  each,  ///< each is, as it comes
  last,  ///< only the last one, when the command has ended
  best,  ///< only that with the best value of the objective, when the command has ended
};

/// How the values of several runs of a command become that of the trial.
enum class RepeatRule : std::uint8_t {
  median,
  mean,
  min,
  max,
  worst,  ///< of an objective or a bounded metric the worst by its mode, of any other metric the median
};

/// A command that is run several times in each trial.
struct RepeatOptions {
  int times = 1;  ///< 1 or more
  RepeatRule use = RepeatRule::median;
  friend bool operator==(const RepeatOptions&, const RepeatOptions&) = default;
};

}  // namespace hypertune::inline v0
