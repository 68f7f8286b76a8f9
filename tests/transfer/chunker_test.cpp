// Laws of cutting by content.
#include "transfer/chunker.hpp"

#include "transfer/chunk_index.hpp"
#include "transfer_support.hpp"

#include <fmt/format.h>

#include <numeric>
#include <random>
#include <set>

using namespace hypertune;
using namespace hypertune::test;
using hypertune::detail::Chunker;
using hypertune::detail::ChunkSizes;

namespace {

constexpr ChunkSizes tested{.smallest = 1024, .average = 4096, .largest = 16384};

/// The pieces of `text`, given to the chunker in pieces of at most `step`.
std::vector<std::string> cut(std::string_view text, ChunkSizes sizes, std::size_t step,
                             std::mt19937_64* random = nullptr) {
  Chunker chunker(sizes);
  std::vector<std::string> chunks;
  std::string current;
  while (!text.empty()) {
    std::size_t size = std::min(text.size(), random != nullptr ? 1 + (*random)() % step : step);
    const auto cut = chunker.scan(text.data(), size);
    if (cut.size == 0 || cut.size > size) FAIL("a cut of " << cut.size << " of " << size << " bytes");
    current += text.substr(0, cut.size);
    text.remove_prefix(cut.size);
    if (!cut.ends) continue;
    chunks.push_back(current);
    current.clear();
  }
  if (!current.empty()) chunks.push_back(current);
  return chunks;
}

}  // namespace

TEST_CASE("chunks are what was cut, within their sizes, however it comes") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    const std::string text = random_bytes(random(), random() % 300'000);
    const auto chunks = cut(text, tested, SIZE_MAX);
    REQUIRE(std::accumulate(chunks.begin(), chunks.end(), std::string()) == text);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      REQUIRE(chunks[i].size() <= tested.largest);
      if (i + 1 < chunks.size()) REQUIRE(chunks[i].size() >= tested.smallest);
    }
    REQUIRE(cut(text, tested, 5000, &random) == chunks);
    if (round < 4) REQUIRE(cut(text, tested, 1) == chunks);
  }
}

TEST_CASE("random bytes are cut to about the average, constant ones to the largest") {
  const auto chunks = cut(random_bytes(3, 4'000'000), tested, SIZE_MAX);
  const double average = 4'000'000.0 / static_cast<double>(chunks.size());
  CHECK(average > 0.6 * tested.average);
  CHECK(average < 1.6 * tested.average);
  for (const auto& chunk : cut(std::string(100'000, '\0'), tested, SIZE_MAX))
    CHECK((chunk.size() == tested.largest || chunk.size() == 100'000 % tested.largest));
}

TEST_CASE("an edit changes the chunks near it, and no others") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    const std::string text = random_bytes(random(), 400'000);
    const auto before = cut(text, tested, SIZE_MAX);
    std::string edited = text;
    const std::size_t at = random() % (text.size() - 2000);
    const std::string other = random_bytes(random(), 1 + random() % 1000);
    switch (round % 3) {
      case 0: edited.replace(at, other.size(), other); break;
      case 1: edited.insert(at, other); break;
      default: edited.erase(at, other.size());
    }
    const std::multiset<std::string> known(before.begin(), before.end());
    std::size_t fresh = 0;
    for (const auto& chunk : cut(edited, tested, SIZE_MAX)) fresh += known.contains(chunk) ? 0 : chunk.size();
    // The chunk of the edit, and until a cut of before is met again: a few chunks in all but the rarest case.
    REQUIRE(fresh <= other.size() + 8 * tested.largest);
    if (round % 3 == 0) CHECK(fresh < text.size() / 3);
  }
}

TEST_CASE("the cuts are part of the format: they are the same everywhere and for ever") {
  std::vector<std::size_t> sizes;
  for (const auto& chunk : cut(random_bytes(42, 60'000), tested, SIZE_MAX)) sizes.push_back(chunk.size());
  CHECK(sizes ==
        std::vector<std::size_t>{4386, 4073, 5196, 5200, 2166, 5004, 3263, 5116, 6309, 5025, 4651, 4451, 4292, 868});
}

TEST_CASE("sizes of chunks follow the size of the file") {
  std::uint32_t last = 0;
  for (std::uint64_t size = 1; size < (std::uint64_t{1} << 45U); size *= 2) {
    const auto sizes = detail::chunk_sizes(size);
    CHECK(sizes.average >= last);
    CHECK(sizes.smallest < sizes.average);
    CHECK(sizes.average < sizes.largest);
    CHECK(sizes.largest <= detail::largest_chunk);
    last = sizes.average;
  }
  CHECK(detail::chunk_sizes(std::uint64_t{1} << 30U).average == 262'144);
}

TEST_CASE("a chunk list is read back, and refused when it does not fit its files") {
  TwoNodes nodes;
  const auto info = save(nodes.source, 0, 1, {{"a", random_bytes(1, 200'000)}, {"b", ""}, {"c", "c"}});
  const Manifest manifest = parse_manifest(read_file(nodes.source.folder(info) / "manifest.json"));
  const auto chunks = detail::chunk_folder(nodes.source.folder(info), manifest, {});
  const std::string bytes = detail::encode_chunks(chunks);
  CHECK(detail::decode_chunks(bytes, manifest) == chunks);
  CHECK(bytes.size() <= detail::max_chunk_bytes(manifest));
  const auto refused = [&](const std::string& text) {
    try {
      static_cast<void>(detail::decode_chunks(text, manifest));
      return false;
    } catch (const Error& e) { return e.code() == Errc::corrupt; }
  };
  for (std::size_t size = 0; size < bytes.size(); size += 7) CHECK(refused(bytes.substr(0, size)));
  CHECK(refused(bytes + bytes.substr(bytes.size() - 36)));
  CHECK(refused("x" + bytes.substr(1)));
  auto sizes = chunks;
  sizes[0].size += 1;
  CHECK(refused(detail::encode_chunks(sizes)));
  sizes[1].size -= 1;  // the file's size is right again: whether the hashes are, its chunks will show
  CHECK_FALSE(refused(detail::encode_chunks(sizes)));
  sizes.back().size = 0;
  CHECK(refused(detail::encode_chunks(sizes)));
}

TEST_CASE("a content id names manifest and chunks, and is kept") {
  TwoNodes nodes;
  const auto one = save(nodes.source, 0, 1, {{"a", random_bytes(1, 200'000)}});
  const auto two = save(nodes.source, 0, 2, {{"a", random_bytes(1, 200'000)}});
  const auto id = content_id(nodes.source, one);
  CHECK(id.size() == 64);
  CHECK(id != content_id(nodes.source, two));  // another step
  CHECK(id == content_id(nodes.source, one));
  const auto cache = nodes.source.folder(0) / ".chunks" / one.digest;
  REQUIRE(std::filesystem::exists(cache));
  auto kept = read_file(cache);
  kept[40] ^= 1;
  write_file(cache, kept);  // damaged: computed again
  CHECK(id == content_id(nodes.source, one));
  nodes.source.drop(one);
  static_cast<void>(content_id(nodes.source, save(nodes.source, 0, 3, {{"a", "x"}})));
  CHECK_FALSE(std::filesystem::exists(cache));  // of one that is gone
  CHECK(nodes.source.list(0).size() == 2);
}
