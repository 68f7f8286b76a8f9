#include "support/test.hpp"

#include <hypertune/detail/utf8.hpp>

#include <boost/locale/utf.hpp>

#include <string>
#include <string_view>

namespace {

using hypertune::detail::append_utf8;
using hypertune::detail::decode_utf8;
using hypertune::detail::utf8_cut;

std::string encoded(char32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

}  // namespace

TEST_CASE("each code point is read back as it was written, and its beginnings alone are not valid") {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    const std::string text = encoded(code);
    const auto read = decode_utf8(text);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (surrogate ? read.valid || read.bytes != 1 : !read.valid || read.bytes != text.size() || read.code != code)
      FAIL("U+" << std::hex << static_cast<unsigned>(code));
    if (text.size() > 1 && decode_utf8(std::string_view(text).substr(0, text.size() - 1)).valid)
      FAIL("cut: U+" << std::hex << static_cast<unsigned>(code));
  }
}

TEST_CASE("malformed UTF-8 is one byte that is not valid") {
  for (const std::string_view text : {"\x80",
                                      "\xBF",  // nothing began
                                      "\xC0\xAF",
                                      "\xC1\xBF",
                                      "\xE0\x80\xAF",
                                      "\xE0\x9F\xBF",  // overlong: of '/', U+007F, '/', U+07FF
                                      "\xF0\x80\x80\xAF",
                                      "\xF0\x8F\xBF\xBF",  // of '/', U+FFFF
                                      "\xF8\x88\x80\x80\x80",
                                      "\xFC\x84\x80\x80\x80\x80",  // forms of five and six bytes
                                      "\xED\xA0\x80",
                                      "\xED\xAF\xBF",
                                      "\xED\xB0\x80",
                                      "\xED\xBF\xBF",
                                      "\xED\xA0\x80\xED\xB0\x80",  // surrogates
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xF7\xBF\xBF\xBF",  // beyond U+10FFFF
                                      "\xFE",
                                      "\xFF",
                                      "\xC3",
                                      "\xE2\x82",
                                      "\xF0\x9F\x98",  // no first byte; cut
                                      "\xC3(",
                                      "\xE2(\xAC",
                                      "\xE2\x82(",
                                      "\xF0(\x8C\xBC",
                                      "\xF0\x90(\xBC",
                                      "\xF0\x90\x8C("}) {
    const auto read = decode_utf8(text);
    CAPTURE(std::string(text));
    CHECK_FALSE(read.valid);
    CHECK(read.bytes == 1);
    CHECK(read.code == U'\uFFFD');
  }
  CHECK(decode_utf8("\xEF\xBF\xBD").valid);  // U+FFFD itself
  CHECK(decode_utf8(std::string_view("\0", 1)).valid);
}

TEST_CASE("any four bytes are judged as another decoder judges them") {
  unsigned state = 1;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (int k = 0; k < 4; ++k) {
      state = state * 1664525U + 1013904223U;
      const unsigned byte = state >> 24U;
      text += static_cast<char>(k == 0 || (state >> 20U & 7U) == 0 ? byte : (byte & 0x3FU) | 0x80U);
    }
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto code = boost::locale::utf::utf_traits<char>::decode(at, end);
    const auto read = decode_utf8(text);
    const bool valid = code != boost::locale::utf::illegal && code != boost::locale::utf::incomplete;
    if (read.valid != valid || (valid && (read.code != code || at != text.data() + read.bytes))) {
      CAPTURE(static_cast<int>(text[0]), static_cast<int>(text[1]), static_cast<int>(text[2]),
              static_cast<int>(text[3]));
      REQUIRE(read.valid == valid);
      REQUIRE(read.code == code);
    }
  }
}

TEST_CASE("a text is cut where a character begins") {
  const std::string_view text = "aé€😀z";  // 1, 2, 3, 4 and 1 bytes
  CHECK(utf8_cut(text, 0) == 0);
  CHECK(utf8_cut(text, 1) == 1);
  CHECK(utf8_cut(text, 2) == 1);
  CHECK(utf8_cut(text, 3) == 3);
  CHECK(utf8_cut(text, 5) == 3);
  CHECK(utf8_cut(text, 9) == 6);
  CHECK(utf8_cut(text, 10) == 10);
  CHECK(utf8_cut(text, 11) == 11);
  CHECK(utf8_cut(text, 100) == 11);
  CHECK(utf8_cut("", 3) == 0);
}
