#include "support/test.hpp"

#include <hypertune/train/detail/gradient_buckets.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

std::vector<TensorView> views(const std::vector<std::pair<std::size_t, ElementType>>& gradients) {
  std::vector<TensorView> all;
  for (const auto& [count, type] : gradients) all.emplace_back(nullptr, count, type);
  return all;
}

/// "3 2|0*": gradients 3 and 2 together, then 0 in place.
std::string text(const std::vector<detail::GradientBucket>& buckets) {
  std::string text;
  for (const auto& bucket : buckets) {
    if (&bucket != &buckets.front()) text += "|";
    for (const auto& piece : bucket.pieces)
      text += (piece.offset == 0 ? "" : " ") + std::to_string(piece.gradient) + (bucket.in_place ? "*" : "");
  }
  return text;
}

constexpr auto f32 = ElementType::float32;
constexpr auto f64 = ElementType::float64;

TEST_CASE("buckets are in the order of the backward pass, the first one small") {
  const auto gradients = views({{10, f32}, {10, f32}, {10, f32}, {10, f32}, {10, f32}, {10, f32}});
  CHECK(text(detail::gradient_buckets(gradients, 40, 120, 1000)) == "5|4 3 2|1 0");
  CHECK(text(detail::gradient_buckets(gradients, 80, 80, 1000)) == "5 4|3 2|1 0");
  CHECK(text(detail::gradient_buckets(gradients, 1, 1, 1000)) == "5|4|3|2|1|0");
  CHECK(text(detail::gradient_buckets(gradients, 1000, 1, 1000)) == "5 4 3 2 1 0");
}

TEST_CASE("each type has buckets of its own") {
  const auto gradients = views({{10, f32}, {10, f64}, {10, f32}, {10, f64}});
  CHECK(text(detail::gradient_buckets(gradients, 1000, 1000, 1000)) == "3 1|2 0");
  CHECK(text(detail::gradient_buckets(gradients, 40, 80, 1000)) == "3|2|1|0");
}

TEST_CASE("large gradients stay where they are, but the last bucket has room for the tail") {
  CHECK(text(detail::gradient_buckets(views({{10, f32}, {100, f32}, {10, f32}}), 1, 1, 400)) == "2|1*|0");
  CHECK(text(detail::gradient_buckets(views({{100, f32}, {10, f32}, {100, f32}}), 1000, 1000, 400)) == "2*|0*|1");
  CHECK(text(detail::gradient_buckets(views({{100, f32}, {200, f64}}), 1000, 1000, 400)) == "1*|0*|");
  CHECK(text(detail::gradient_buckets({}, 1000, 1000, 400)).empty());
  CHECK(detail::gradient_buckets({}, 1000, 1000, 400).size() == 1);
}

TEST_CASE("all gradients are in one bucket each, within the limits, for any sizes") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::size_t, ElementType>> sizes(random() % 20);
    for (auto& [count, type] : sizes) {
      count = random() % 50;
      type = std::vector{f32, f64, ElementType::float16, ElementType::bfloat16}[random() % 4];
    }
    const auto gradients = views(sizes);
    const std::size_t limit = 1 + random() % 500, in_place = 1 + random() % 300;
    const auto buckets = detail::gradient_buckets(gradients, 1 + random() % limit, limit, in_place);
    std::set<std::size_t> seen;
    REQUIRE_FALSE(buckets.empty());
    CHECK_FALSE(buckets.back().in_place);
    for (const auto& bucket : buckets) {
      std::size_t offset = 0;
      for (const auto& piece : bucket.pieces) {
        const auto& gradient = gradients[piece.gradient];
        CHECK(seen.insert(piece.gradient).second);
        CHECK(gradient.type == bucket.type);
        CHECK(piece.offset == offset);
        CHECK(bucket.in_place == (gradient.bytes() >= in_place));
        offset += gradient.count;
      }
      CHECK(bucket.count == offset);
      CHECK((bucket.pieces.size() < 2 || bucket.count * size_of(bucket.type) <= limit));
    }
    CHECK(seen.size() == gradients.size());
  }
}

TEST_CASE("tails of all ranks come through a sum of any element type") {
  const int size = 3;
  const std::vector<detail::GradientTail> tails = {
      {.samples = std::numeric_limits<std::int64_t>::max(), .squares = 0.1, .parts = 4000000000U, .signal = false},
      {.samples = 0, .squares = std::numeric_limits<double>::infinity(), .parts = 0, .signal = true},
      {.samples = 255 * 257, .squares = -1e-300, .parts = 3, .signal = false}};
  for (const auto type : {f32, f64, ElementType::float16, ElementType::bfloat16, ElementType::uint8}) {
    std::vector<std::byte> sum(detail::tail_elements(size) * size_of(type));
    for (int rank = 0; rank < size; ++rank) {  // where one has something, the others have zeros, which are zero bytes
      const auto mine = detail::encoded_tail(tails[static_cast<std::size_t>(rank)], rank, size, type);
      REQUIRE(mine.size() == sum.size());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        CHECK((mine[i] == std::byte{} || sum[i] == std::byte{}));
        sum[i] |= mine[i];
      }
    }
    const auto decoded = detail::decoded_tails(sum, size, type);
    for (std::size_t rank = 0; rank < tails.size(); ++rank) {
      CHECK(decoded[rank].samples == tails[rank].samples);
      CHECK(decoded[rank].squares == tails[rank].squares);
      CHECK(decoded[rank].parts == tails[rank].parts);
      CHECK(decoded[rank].signal == tails[rank].signal);
    }
  }
}

}  // namespace
