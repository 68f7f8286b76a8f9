// Requests of any size and in any pieces: read, or refused by their size, and never an exception.
#include "support/test.hpp"

#include <hypertune/net/request_reader.hpp>

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

using hypertune::detail::RequestReader;

namespace {

using End = std::string;  // "whole", or what is wrong; "": more is needed

/// Gives `text` in pieces of `piece` bytes, until the reader has enough. Returns what is left.
End feed(RequestReader& reader, std::string_view& text, std::size_t piece) {
  auto end = reader.parse();
  while (!end && !text.empty()) {
    const auto room = reader.prepare();
    if (room.size() == 0) return "no room";
    const std::size_t n = std::min({room.size(), piece, text.size()});
    std::copy_n(text.begin(), n, static_cast<char*>(room.data()));
    reader.commit(n);
    text.remove_prefix(n);
    end = reader.parse();
  }
  return !end ? "" : *end ? end->message() : "whole";
}

/// How the reader judges a request, which must not depend on its pieces.
End judged(std::string_view text, std::size_t head, std::uint64_t body = 1000) {
  std::optional<End> first;
  for (const std::size_t piece : {std::size_t{1} << 20U, std::size_t{4096}, std::size_t{777}, std::size_t{1}}) {
    RequestReader reader(head, body);
    std::string_view rest = text;
    const End end = feed(reader, rest, piece);
    INFO("pieces of " << piece << " bytes");
    if (first) CHECK(*first == end);
    first = end;
  }
  return *first;
}

const End whole = "whole", too_large = "header limit exceeded";

std::string with_head(const std::string& fields) { return "GET / HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n"; }
std::string chunked(const std::string& rest) { return with_head("Transfer-Encoding: chunked\r\n") + rest; }
std::string of(std::size_t size) { return std::string(size, 'a'); }

}  // namespace

TEST_CASE("a head may have as many bytes as the limit says, and no more") {
  const auto sized = [](std::size_t size) {
    const std::string text = with_head("X: \r\n");
    return with_head("X: " + of(size - text.size()) + "\r\n");
  };
  for (const std::size_t limit : {std::size_t{200}, std::size_t{8192}, RequestReader::largest_part}) {
    CHECK(judged(sized(limit), limit) == whole);
    CHECK(judged(sized(limit + 1), limit) == too_large);
  }
  std::string many;  // the limit is for all headers together
  for (int i = 0; i < 100; ++i) many += "X: 12345\r\n";
  CHECK(judged(with_head(many), 2000) == whole);
  CHECK(judged(with_head(many), 900) == too_large);
  CHECK(judged(std::string("GET /") + of(300) + " HTTP/1.1\r\n\r\n", 200) == too_large);
  CHECK(judged(of(300), 200) == too_large);
}

TEST_CASE("no part of a request is larger than a parser is shown") {
  constexpr std::size_t largest = std::size_t{1} << 20U;  // a larger limit than there can be
  for (const std::size_t size : {std::size_t{40'000}, std::size_t{60'000}}) {
    CHECK(judged(with_head("X: " + of(size) + "\r\n"), largest) == whole);
    CHECK(judged(with_head(of(size) + ": x\r\n"), largest) == whole);
    CHECK(judged("GET /" + of(size) + " HTTP/1.1\r\n\r\n", largest) == whole);
  }
  std::string many;
  while (many.size() < RequestReader::largest_part) many += "X: " + of(1000) + "\r\n";
  CHECK(judged(with_head(many), largest) == too_large);
}

TEST_CASE("what follows a chunked body is limited like a head") {
  CHECK(judged(chunked("3\r\nabc\r\n0\r\n\r\n"), 8192) == whole);
  CHECK(judged(chunked("3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n"), 8192) == whole);
  CHECK(judged(chunked("0\r\n\r\n"), 8192, 0) == whole);
  CHECK(judged(chunked("3\r\nabc\r\n0\r\n\r\n"), 8192, 0) == "body limit exceeded");
  for (const std::size_t limit : {std::size_t{1000}, std::size_t{8192}}) {
    for (const std::size_t size : {limit, limit + 5000}) {
      CHECK(judged(chunked("0\r\nX: " + of(size) + "\r\n\r\n"), limit) == too_large);
      CHECK(judged(chunked("0\r\n" + of(size) + ": x\r\n\r\n"), limit) == too_large);
      CHECK(judged(chunked("3;" + of(size) + "\r\nabc\r\n0\r\n\r\n"), limit) == too_large);
    }
    CHECK(judged(chunked("0\r\nX: " + of(limit - 100) + "\r\n\r\n"), limit) == whole);
    CHECK(judged(chunked("3;" + of(limit - 100) + "\r\nabc\r\n0\r\n\r\n"), limit) == whole);
  }
}

TEST_CASE("requests that come together are read one after the other") {
  const std::string text = with_head("Content-Length: 3\r\n") + "abc" + chunked("2\r\nde\r\n0\r\n\r\n") + with_head("");
  for (const std::size_t piece : {std::size_t{4096}, std::size_t{7}, std::size_t{1}}) {
    RequestReader reader(8192, 100);
    CHECK(reader.empty());
    std::string_view rest = text;
    for (const char* body : {"abc", "de", ""}) {
      CHECK(feed(reader, rest, piece) == whole);
      CHECK(reader.request().body() == body);
      reader.begin();
    }
    CHECK(rest.empty());
    CHECK(reader.empty());
  }
}
