// Chunker: content-defined chunking with a gear hash.
#include "chunker.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

// SplitMix64 with state 1. Any random table works if all nodes use the same one.
constexpr std::array<std::uint64_t, 256> make_gear() {
  std::array<std::uint64_t, 256> table{};
  std::uint64_t state = 1;
  for (auto& entry : table) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    entry = z ^ (z >> 31U);
  }
  return table;
}
constexpr auto gear = make_gear();

// The upper bits of the hash depend on the most bytes: the topmost on 64.
constexpr std::uint64_t top_bits(int count) { return ~std::uint64_t{0} << (64 - count); }
constexpr std::uint32_t window = 64;

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

}  // namespace

ChunkSizes chunk_sizes(std::uint64_t file_size) {
  std::uint32_t average = std::uint32_t{4} << 20U;
  if (file_size < 32 * mib)
    average = std::uint32_t{16} << 10U;
  else if (file_size < 512 * mib)
    average = std::uint32_t{64} << 10U;
  else if (file_size < 16 * gib)
    average = std::uint32_t{256} << 10U;
  else if (file_size < 1024 * gib)
    average = std::uint32_t{1} << 20U;
  return {.smallest = average / 4, .average = average, .largest = average * 4};
}

Chunker::Chunker(ChunkSizes sizes)
    : sizes_(sizes),
      strict_(top_bits(std::bit_width(sizes.average) - 1 + 2)),
      loose_(top_bits(std::bit_width(sizes.average) - 1 - 2)) {}

Chunker::Cut Chunker::scan(const char* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data);
  const std::size_t room = std::min<std::size_t>(size, sizes_.largest - length_);
  const std::uint32_t begin = length_;
  const auto at = [&](std::uint32_t length) {  // index in `bytes` at which the chunk has this length
    return length <= begin ? std::size_t{0} : std::min<std::size_t>(length - begin, room);
  };
  std::size_t i = at(sizes_.smallest - std::min(window, sizes_.smallest));
  std::uint64_t hash = hash_;
  for (const std::size_t end = at(sizes_.smallest); i < end; ++i) hash = (hash << 1U) + gear[bytes[i]];
  for (const auto& [limit, mask] : {std::pair(sizes_.average, strict_), std::pair(sizes_.largest, loose_)})
    for (const std::size_t end = at(limit); i < end;) {
      hash = (hash << 1U) + gear[bytes[i++]];
      if ((hash & mask) != 0) continue;
      length_ = 0;
      hash_ = 0;
      return {i, true};
    }
  length_ += static_cast<std::uint32_t>(room);
  hash_ = hash;
  if (length_ < sizes_.largest) return {room, false};
  length_ = 0;
  hash_ = 0;
  return {room, true};
}

}  // namespace hypertune::inline v0::detail
