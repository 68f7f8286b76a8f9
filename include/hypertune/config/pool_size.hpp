// PoolSize: the bounds of a number of workers that follows the queue of trials. Plain data.
#pragma once

#include <hypertune/option.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0 {

/// As many workers as the queue of trials needs, within these bounds.
struct PoolSize {
  int min = 1, max = 8;
  friend bool operator==(const PoolSize&, const PoolSize&) = default;
};
using WorkerCount [[deprecated("is now PoolSize")]] = PoolSize;

/// Throws an OptionError of `type` about its "pool" if the bounds are invalid.
inline void check_pool(const PoolSize& pool, std::string_view type) {
  constexpr int most = 4096;
  const auto refuse = [&](const std::string& problem) { throw OptionError(type, "pool", problem); };
  if (pool.max == 0) refuse("must be 1 or more (0 workers run nothing)");
  if (pool.max < 0 || pool.min < 0) refuse("must be like 1..32, or 8 for 1..8: no number is negative");
  if (pool.max > most) refuse(detail::format("is {}..{}, but must be like 1..32: up to {}", pool.min, pool.max, most));
  if (pool.min > pool.max)
    refuse(
        detail::format("is {0}..{1}: the lower bound {0} is above the upper bound {1}: swap them", pool.min, pool.max));
}

/// Parses "1..32", or "8" for 1..8. nullopt: it is neither.
inline std::optional<PoolSize> parse_pool_size(std::string_view text) {
  const auto number = [](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  PoolSize pool;
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    if (!number(text, pool.max)) return std::nullopt;
  } else if (!number(text.substr(0, dots), pool.min) || !number(text.substr(dots + 2), pool.max)) {
    return std::nullopt;
  }
  return pool;
}

}  // namespace hypertune::inline v0
