// A set of ranges of bytes.
#pragma once

#include "target.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace hypertune::inline v0::detail {

class Intervals {
 public:
  void add(ByteRange range) {
    if (range.begin >= range.end) return;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin() && std::prev(at)->second >= range.begin) --at;
    while (at != ranges_.end() && at->first <= range.end) {
      range.begin = std::min(range.begin, at->first);
      range.end = std::max(range.end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(range.begin, range.end);
  }

  void remove(ByteRange range) {
    if (range.begin >= range.end) return;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin()) --at;
    while (at != ranges_.end() && at->first < range.end) {
      const ByteRange old{at->first, at->second};
      if (old.end <= range.begin) {
        ++at;
        continue;
      }
      at = ranges_.erase(at);
      if (old.begin < range.begin) ranges_.emplace(old.begin, range.begin);
      if (old.end > range.end) ranges_.emplace(range.end, old.end);
    }
  }

  /// How far the set continues without a gap from `offset`; `offset` itself if it is not in the set.
  std::uint64_t reaches(std::uint64_t offset) const {
    auto at = ranges_.upper_bound(offset);
    if (at == ranges_.begin()) return offset;
    return std::max(offset, std::prev(at)->second);
  }
  bool contains(ByteRange range) const { return range.begin >= range.end || reaches(range.begin) >= range.end; }

  bool overlaps(ByteRange range) const {
    const auto at = ranges_.lower_bound(range.end);
    return range.begin < range.end && at != ranges_.begin() && std::prev(at)->second > range.begin;
  }

  std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const auto& [begin, end] : ranges_) sum += end - begin;
    return sum;
  }

  /// The parts of [0, total) that are missing.
  std::vector<ByteRange> gaps(std::uint64_t total) const {
    std::vector<ByteRange> missing;
    std::uint64_t at = 0;
    for (const auto& [begin, end] : ranges_) {
      if (begin > at) missing.push_back({at, std::min(begin, total)});
      at = std::max(at, end);
      if (at >= total) break;
    }
    if (at < total) missing.push_back({at, total});
    return missing;
  }

  std::vector<ByteRange> all() const {
    std::vector<ByteRange> list;
    for (const auto& [begin, end] : ranges_) list.push_back({begin, end});
    return list;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end; neither overlapping nor touching
};

}  // namespace hypertune::inline v0::detail
