// Random search spaces for property tests.
#pragma once

#include <hypertune/space/space.hpp>

#include <fmt/format.h>

#include <string>
#include <vector>

namespace hypertune_test {

namespace ht = hypertune;

inline double between(ht::Rng& rng, double low, double high) { return low + (high - low) * ht::uniform01(rng); }
inline int pick(ht::Rng& rng, int n) { return static_cast<int>(between(rng, 0, n)); }

/// One of every kind of domain, with random bounds.
inline ht::Dim<> random_dim(const std::string& name, ht::Rng& rng) {
  const double low = between(rng, -100, 100);
  const double width = std::pow(10, between(rng, -3, 3));
  const double positive = std::pow(10, between(rng, -6, 3));
  const auto whole = static_cast<std::int64_t>(low);
  const auto start = static_cast<std::int64_t>(between(rng, 1, 50));
  const std::int64_t span = pick(rng, 1000);
  switch (pick(rng, 18)) {
    case 0: return ht::dim(name, ht::uniform(low, low + width));
    case 1: return ht::dim(name, ht::quantized(low, low + width, width / between(rng, 1, 30)));
    case 2: return ht::dim(name, ht::quantized(0, 1 + pick(rng, 3), 0.1));
    case 3: return ht::dim(name, ht::log_uniform(positive, positive * (1 + width)));
    case 4: return ht::dim(name, ht::quantized_log(positive, positive * (1 + width), positive * between(rng, 0.1, 3)));
    case 5: return ht::dim(name, ht::normal(low, width));
    case 6: return ht::dim(name, ht::normal(low, width).truncated(low - width, low + 2 * width));
    case 7: return ht::dim(name, ht::normal(low, width).truncated(low + 2 * width, low + 4 * width));
    case 8: return ht::dim(name, ht::quantized_normal(low, width, width / between(rng, 0.5, 20)));
    case 9: return ht::dim(name, ht::log_normal(between(rng, -3, 3), between(rng, 0.1, 2)));
    case 10: return ht::dim(name, ht::integer(whole, whole + span));
    case 11: return ht::dim(name, ht::integer(whole, whole + span, 1 + pick(rng, 20)));
    case 12: return ht::dim(name, ht::log_int(start, start + span));
    case 13: return ht::dim(name, ht::choice<std::string>({"a", "b", "c d", "5", "true"}));
    case 14: return ht::dim(name, ht::ordinal({1, 2, 5}));
    case 15: return ht::dim(name, ht::boolean());
    case 16: return ht::dim(name, ht::grid({0.5, 1.0, 4.0}));
    default: return ht::dim(name, ht::constant(2.5));
  }
}

/// Up to ten dimensions, some conditional on others, parents before or after their children.
inline ht::Space<> random_space(ht::Rng& rng) {
  const int n = 1 + pick(rng, 10);
  std::vector<int> rank(static_cast<std::size_t>(n));  // a condition goes from a lower rank to a higher one
  std::vector<ht::Dim<>> dims;
  for (int i = 0; i < n; ++i) dims.push_back(random_dim(fmt::format("p{}", i), rng));
  for (auto& r : rank) r = pick(rng, 1000);
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (std::size_t j = 0; j < dims.size(); ++j) {
      if (rank[j] >= rank[i] || pick(rng, 3) != 0) continue;
      const auto& draft = dims[j].draft();
      if (!draft.options.empty()) {
        std::vector<ht::Value> values{draft.options.front()};
        if (pick(rng, 2) == 0) values.push_back(draft.options.back());
        dims[i] = dims[i].when(dims[j].name(), values);
      } else if (std::isfinite(draft.info.lower) && std::isfinite(draft.info.upper)) {
        dims[i] = dims[i].when_between(dims[j].name(), draft.info.lower, (draft.info.lower + draft.info.upper) / 2);
      }
    }
  return ht::Space<>(std::move(dims));
}

}  // namespace hypertune_test
