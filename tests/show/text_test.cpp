#include "support/test.hpp"

#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/percent.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/utf8.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace detail = hypertune::detail;

TEST_CASE("a text is taken apart at a character") {
  const auto lines = [](std::string_view text) {
    std::vector<std::string> all;
    while (!text.empty()) all.emplace_back(detail::take_until(text, '\n'));
    return all;
  };
  CHECK(lines("").empty());
  CHECK(lines("\n") == std::vector<std::string>{""});
  CHECK(lines("a\n\nb") == std::vector<std::string>{"a", "", "b"});
  CHECK(lines("a\nb\n") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a text from outside becomes one short line of ASCII") {
  CHECK(detail::ascii_line("a\x1b[1m \x7f\xc3\xa4\r\nb") == "a?[1m ????");
  CHECK(detail::ascii_line(std::string(300, 'a')) == std::string(200, 'a'));
}

TEST_CASE("a text is cut between characters") {
  CHECK(detail::utf8_shortened("äöü", 6) == "äöü");
  CHECK(detail::utf8_shortened("äöü", 5) == "äö…");
  CHECK(detail::utf8_shortened("äöü", 1) == "…");
}

TEST_CASE("only a whole text is a number") {
  CHECK(detail::parse_number<int>("-12") == -12);
  CHECK(detail::parse_number<double>("1e3") == 1000.0);
  CHECK(detail::parse_number<std::uint16_t>("65535") == std::uint16_t{65535});
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "65536", "0x1", "1.0"})
    CHECK_FALSE(detail::parse_number<std::uint16_t>(text));
}

TEST_CASE("bytes are written as hexadecimal digits and read back") {
  CHECK(detail::to_hex(std::array<unsigned char, 3>{0, 0x9A, 0xFF}) == "009aff");
  CHECK(detail::from_hex("009aFF") == std::string("\0\x9a\xff", 3));
  CHECK(detail::from_hex("") == std::string());
  for (const char* text : {"0", "0g", "-1", "0x", " 1"}) CHECK_FALSE(detail::from_hex(text));
  CHECK(detail::is_hex("09af", 4));
  for (const char* text : {"", "09a", "09af0", "09aF"}) CHECK_FALSE(detail::is_hex(text, 4));
}

TEST_CASE("percent-encoding is written and read back") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(detail::percent_decoded(detail::percent_encoded(all)) == all);
  CHECK(detail::percent_encoded("aZ0-._~ /ä") == "aZ0-._~%20%2F%C3%A4");
  CHECK(detail::percent_decoded("%2f+a%20") == "/+a ");
  for (const char* text : {"%", "%2", "a%2", "%2g", "%-1", "%%20"}) CHECK_FALSE(detail::percent_decoded(text));
}
