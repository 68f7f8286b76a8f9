// Even shares of consecutive items among the ranks of a group.
#pragma once

#include <hypertune/error.hpp>

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0 {

/// Items begin, begin + 1, ..., end - 1.
struct Share {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const Share&, const Share&) = default;
};

/// The share of rank `rank` of `size` in `items` items. The shares are consecutive by rank, cover all items, and differ
/// by at most one item; lower ranks have the larger ones. With fewer items than ranks some shares are empty. Error of
/// kind `usage` if the rank is not in 0 ... size - 1.
inline Share even_share(std::uint64_t items, int rank, int size) {
  if (rank < 0 || rank >= size) fail(Errc::usage, "a share of rank {} of {}", rank, size);
  const auto ranks = static_cast<std::uint64_t>(size), mine = static_cast<std::uint64_t>(rank);
  const std::uint64_t each = items / ranks, larger = items % ranks;
  const std::uint64_t begin = each * mine + std::min(mine, larger);
  return {begin, begin + each + (mine < larger ? 1 : 0)};
}

}  // namespace hypertune::inline v0
