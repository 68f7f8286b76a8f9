#include "support/test.hpp"

#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/random.hpp>

#include <string>

using namespace hypertune;

namespace {

const std::string sum(32, 'a');

Manifest example() {
  return {
      .trial = 7, .steps = 27, .parent = "step-18", .files = {{"a \"quoted\" \\ name", 3, sum}, {"größe/π", 0, sum}}};
}

std::string refused(const std::string& text) {
  try {
    static_cast<void>(parse_manifest(text));
  } catch (const Error& e) {
    CHECK(e.code() == Errc::corrupt);
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return e.what();
  }
  return "accepted";
}

/// The manifest with `from` replaced, and a checksum that fits.
std::string with(std::string from, const std::string& to) {
  std::string text = to_text(example());
  text.replace(text.find(from), from.size(), to);
  text.resize(text.find("\"checksum\": ") + 12);
  return text + '"' + detail::ContentHash::of(text) + "\"}\n";
}

}  // namespace

TEST_CASE("a manifest reads back as what was written") {
  CHECK(parse_manifest(to_text(example())) == example());
  CHECK(parse_manifest(to_text({})) == Manifest{});
}

TEST_CASE("a manifest with a mistake is refused with the mistake") {
  using Case = std::tuple<std::string, std::string, std::string>;
  const auto [from, to, why] = GENERATE(table<std::string, std::string, std::string>({
      Case{"\"version\": 1", "\"version\": 2", "version 2, but this hypertune reads version 1"},
      Case{"hypertune-checkpoint", "other", "not the manifest of a checkpoint"},
      Case{"größe/π", "../escape", "'../escape' cannot be"},
      Case{"größe/π", "/etc/passwd", "'/etc/passwd' cannot be"},
      Case{"größe/π", "x//y", "empty part"},
      Case{"größe/π", "", "'' cannot be"},
      Case{"größe/π", "manifest.json", "hypertune's own file"},
      Case{"größe/π", "\xff", "plain UTF-8"},
      Case{"größe/π", "a \\\"quoted\\\" \\\\ name", "stands twice"},
      Case{"größe/π", "A", "out of order"},
      Case{"größe/π", std::string(5000, 'x'), "longer than 4096"},
      Case{"größe/π", "x\\u0041", "escape"},
      Case{"\"size\": 3", "\"size\": -3", "whole number"},
      Case{"\"size\": 3", "\"size\": 03", "starts with 0"},
      Case{"\"size\": 3", "\"size\": 99999999999999999999", "larger than"},
      Case{"\"size\": 0", "\"size\": 9223372036854775807", "add up to more"},
      Case{"\"steps\": 27", "\"steps\": 2147483648", "larger than 2147483647"},
      Case{"\"steps\"", "\"step\"", "\"steps\" should stand here"},
      Case{sum, "xyz", "no checksum"},
      Case{"],", "", "should stand here"},
  }));
  INFO(from << " -> " << to);
  CHECK_THAT(refused(with(from, to)), ContainsSubstring(why));
}

TEST_CASE("a manifest cut anywhere, or with any bit flipped, is refused") {
  const std::string text = to_text(example());
  for (std::size_t n = 0; n < text.size(); ++n) REQUIRE(refused(text.substr(0, n)) != "accepted");
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(refused(flipped) != "accepted");
  }
  CHECK(refused(text + " ") != "accepted");
  CHECK(refused(std::string(1'000'000, '[')) != "accepted");
}

TEST_CASE("names that no manifest can hold are refused") {
  const auto name =
      GENERATE(as<std::string>(), "", "..", "a/../b", "./a", "/a", "a/", "a//b", "manifest.json", "a\nb", "\xc0\xaf",
               "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", std::string("a\0b", 3), std::string(4097, 'x'));
  CHECK_THROWS_AS(require_manifest_name(name), Error);
  CHECK_THROWS_AS(to_text({.trial = 0, .steps = 0, .parent = {}, .files = {{name, 0, sum}}}), Error);
  CHECK_NOTHROW(require_manifest_name("shards/\xf0\x9f\x98\x80/manifest.json"));
}
