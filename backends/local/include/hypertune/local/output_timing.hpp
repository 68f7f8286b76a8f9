// When the reports of a program arrived, and what that says about its buffering.
#pragma once

#include <hypertune/trial/detail/command_rules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace hypertune::inline v0::local {

/// Times in seconds, by one clock. Plain numbers, so that the judgement depends on nothing else.
struct OutputTiming {
  double began = 0;  ///< the program
  double first = 0;  ///< when its first report arrived
  double ended = 0;  ///< the program
};

/// Whether a program that made several reports kept them back until its end: it ran for a second or more, and the first
/// report came in the last tenth of that time, and the last second.
inline bool came_at_the_end(const OutputTiming& timing) {
  const double ran = timing.ended - timing.began;
  return ran >= 1 && timing.ended - timing.first <= std::min(1.0, ran / 10);
}

/// One line about that, for the user.
inline std::string about_buffering(const OutputTiming& timing, CommandOutput output) {
  const auto seen = fmt::format(
      "printed all of its reports in the last {:.2g} s of {:.3g} s, so that it could not be stopped early: ",
      std::max(0.01, timing.ended - timing.first), timing.ended - timing.began);
  return seen + (output == CommandOutput::pipe
                     ? "if it buffers its output, set 'trial.output: line', or run it with python -u or stdbuf -oL"
                     : "if it buffers its output though that is a terminal, let it flush after each report");
}

}  // namespace hypertune::inline v0::local
