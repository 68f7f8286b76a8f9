// WorkerCount: the bounds of a number of workers that follows the queue of trials. Plain data.
#pragma once

#include <hypertune/option.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0 {

/// As many workers as the queue of trials needs, within these bounds.
struct WorkerCount {
  int min = 1, max = 8;
  friend bool operator==(const WorkerCount&, const WorkerCount&) = default;
};

/// Throws an OptionError of `type` about its "workers" if the bounds are invalid.
inline void check_workers(const WorkerCount& workers, std::string_view type) {
  constexpr int most = 4096;
  const auto refuse = [&](const std::string& problem) { throw OptionError(type, "workers", problem); };
  if (workers.max == 0) refuse("must be 1 or more (0 workers run nothing)");
  if (workers.max < 0 || workers.min < 0) refuse("must be like 1..32, or 8 for 1..8: no number is negative");
  if (workers.max > most)
    refuse(detail::format("is {}..{}, but must be like 1..32: up to {}", workers.min, workers.max, most));
  if (workers.min > workers.max)
    refuse(detail::format("is {0}..{1}: the lower bound {0} is above the upper bound {1}: swap them", workers.min,
                          workers.max));
}

/// Parses "1..32", or "8" for 1..8. nullopt: it is neither.
inline std::optional<WorkerCount> parse_worker_count(std::string_view text) {
  const auto number = [](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  WorkerCount workers;
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    if (!number(text, workers.max)) return std::nullopt;
  } else if (!number(text.substr(0, dots), workers.min) || !number(text.substr(dots + 2), workers.max)) {
    return std::nullopt;
  }
  return workers;
}

}  // namespace hypertune::inline v0
