// How gradients are grouped for their reduction, and the data that travels with them.
#pragma once

#include <hypertune/train/element.hpp>
#include <hypertune/train/gradient_memory.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Gradients that one collective reduces: copied into contiguous memory, or a large one alone in place.
struct GradientBucket {
  struct Piece {
    std::size_t gradient = 0;  ///< its index
    std::size_t offset = 0;    ///< in elements
  };
  ElementType type = {};
  bool in_place = false;
  std::vector<Piece> pieces = {};
  std::size_t count = 0;  ///< elements, without the tail
};

/// The buckets in the order in which they are reduced. That is the order of the backward pass, which computes the last
/// gradients first (Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020). A
/// bucket has one element type, and is closed before it would exceed its limit; the first bucket of each type has a
/// limit of its own. The last bucket is never in place, as it has room for the tail; if all others are in place, it has
/// no gradients. Depends on the arguments alone, so that all ranks get the same.
inline std::vector<GradientBucket> gradient_buckets(const std::vector<TensorView>& gradients, std::size_t first_bytes,
                                                    std::size_t bytes, std::size_t in_place_bytes) {
  std::vector<GradientBucket> buckets;
  struct Open {
    std::optional<GradientBucket> bucket = {};
    bool first = true;
  };
  std::array<Open, 8> open;  // by type
  const auto close = [&](Open& of) {
    buckets.push_back(std::move(*of.bucket));
    of = {.first = false};
  };
  for (std::size_t i = gradients.size(); i-- > 0;) {
    const TensorView& gradient = gradients[i];
    if (gradient.bytes() >= in_place_bytes) {
      buckets.push_back({gradient.type, true, {{i, 0}}, gradient.count});
      continue;
    }
    Open& of = open[static_cast<std::size_t>(gradient.type)];
    const std::size_t limit = of.first ? first_bytes : bytes;
    if (of.bucket && (of.bucket->count + gradient.count) * size_of(gradient.type) > limit) close(of);
    if (!of.bucket) of.bucket = GradientBucket{.type = gradient.type};
    of.bucket->pieces.push_back({i, of.bucket->count});
    of.bucket->count += gradient.count;
    if (of.bucket->count * size_of(gradient.type) >= limit) close(of);
  }
  // An open bucket is ready when its last piece is, so the one with the earliest gradient comes last.
  std::vector<Open*> rest;
  for (Open& of : open)
    if (of.bucket) rest.push_back(&of);
  std::sort(rest.begin(), rest.end(), [](const Open* a, const Open* b) {
    return a->bucket->pieces.back().gradient > b->bucket->pieces.back().gradient;
  });
  for (Open* of : rest) close(*of);
  const auto last = std::find_if(buckets.rbegin(), buckets.rend(), [](const auto& b) { return !b.in_place; });
  if (last == buckets.rend())
    buckets.push_back({.type = ElementType::uint8});
  else
    std::rotate(last.base() - 1, last.base(), buckets.end());
  return buckets;
}

/// The data that a rank sends to all others with its last bucket.
struct GradientTail {
  std::int64_t samples = 0;
  double squares = 0;       ///< sum over its parts of samples times squared norm
  std::uint32_t parts = 0;  ///< number of parts: gradients that it has accumulated
  bool signal = false;

  static constexpr std::size_t length = 8 + 8 + 4 + 1;
};

/// The tails are elements of the bucket's type after its gradients. Each rank writes its own tail, one byte per
/// element, and zeros in the places of the others, so that the sum over all ranks has all tails. The sum is exact: all
/// element types, even BFloat16 with its 8 bits, can represent 0 ... 255. The encoded result is the bytes of these
/// elements.
inline std::size_t tail_elements(int size) { return GradientTail::length * static_cast<std::size_t>(size); }

inline std::vector<std::byte> encoded_tail(const GradientTail& tail, int rank, int size, ElementType type) {
  std::array<std::uint8_t, GradientTail::length> bytes = {};
  std::memcpy(bytes.data(), &tail.samples, 8);
  std::memcpy(bytes.data() + 8, &tail.squares, 8);
  std::memcpy(bytes.data() + 16, &tail.parts, 4);
  bytes[20] = tail.signal ? 1 : 0;
  std::vector<std::byte> elements(tail_elements(size) * size_of(type));
  std::byte* at = elements.data() + bytes.size() * static_cast<std::size_t>(rank) * size_of(type);
  for (const std::uint8_t byte : bytes) {
    const auto write = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (type) {
      case ElementType::float32: write(static_cast<float>(byte)); break;
      case ElementType::float64: write(static_cast<double>(byte)); break;
      case ElementType::float16: write(Half(byte)); break;
      case ElementType::bfloat16: write(BFloat16(byte)); break;
      default: write(byte);
    }
    at += size_of(type);
  }
  return elements;
}

/// The tails by rank.
inline std::vector<GradientTail> decoded_tails(std::span<const std::byte> elements, int size, ElementType type) {
  std::vector<GradientTail> tails(static_cast<std::size_t>(size));
  const std::byte* at = elements.data();
  for (GradientTail& tail : tails) {
    std::array<std::uint8_t, GradientTail::length> bytes = {};
    for (std::uint8_t& byte : bytes) {
      const auto read = [&]<class T>(T value) {
        std::memcpy(&value, at, sizeof value);
        return value;
      };
      switch (type) {
        case ElementType::float32: byte = static_cast<std::uint8_t>(read(float{})); break;
        case ElementType::float64: byte = static_cast<std::uint8_t>(read(double{})); break;
        case ElementType::float16: byte = static_cast<std::uint8_t>(static_cast<float>(read(Half{}))); break;
        case ElementType::bfloat16: byte = static_cast<std::uint8_t>(static_cast<float>(read(BFloat16{}))); break;
        default: byte = read(std::uint8_t{});
      }
      at += size_of(type);
    }
    std::memcpy(&tail.samples, bytes.data(), 8);
    std::memcpy(&tail.squares, bytes.data() + 8, 8);
    std::memcpy(&tail.parts, bytes.data() + 16, 4);
    tail.signal = bytes[20] != 0;
  }
  return tails;
}

}  // namespace hypertune::inline v0::detail
