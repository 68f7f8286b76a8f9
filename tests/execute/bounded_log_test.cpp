// A trial's log keeps its beginning and its end, says what it left out, and can be followed all the while.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/bounded_log.hpp>
#include <hypertune/execute/log_limit.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace hypertune;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string line(int number) { return fmt::format("line {:08d}\n", number); }

}  // namespace

TEST_CASE("a log beyond its limit keeps its beginning and its end, and says how much is left out") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  constexpr std::uint64_t limit = 64 * 1024;
  constexpr int lines = 100'000;
  std::uint64_t largest = 0;
  {
    BoundedLog log(path, limit);
    for (int i = 0; i < lines; ++i) {
      log.write(line(i));
      if (i % 100 == 0) largest = std::max(largest, std::filesystem::file_size(path));
    }
  }
  CHECK(largest <= limit + 200);
  const std::string text = text_of(path);
  CHECK(text.size() > limit / 2);
  CHECK(text.starts_with(line(0) + line(1)));
  CHECK(text.ends_with(line(lines - 2) + line(lines - 1)));
  const auto parts = detail::LogParts::of(path, limit);
  CHECK(parts.length() == lines * line(0).size());
  CHECK(parts.left_out > 0);
  CHECK_THAT(text,
             ContainsSubstring(fmt::format(
                 "[hypertune: {} bytes of this log are left out here, log_limit is 65536]\nline ", parts.left_out)));
  // A later attempt goes on counting.
  BoundedLog(path, limit).write(std::string(limit, 'x'));
  CHECK(detail::LogParts::of(path, limit).length() == lines * line(0).size() + limit);
  CHECK(text_of(path).starts_with(line(0)));
}

TEST_CASE("a log without a limit, or within it, is as it was printed") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  std::string all;
  BoundedLog log(path, 0);
  for (int i = 0; i < 10'000; ++i) log.write(line(i)), all += line(i);
  CHECK(text_of(path) == all);
  // Lowered later on: what lies there already is cut.
  BoundedLog(path, 8192).write("the end\n");
  CHECK(std::filesystem::file_size(path) < 8192);
  CHECK(text_of(path).ends_with("the end\n"));
  const auto within = directory.path() / "within";
  BoundedLog(within, 8192).write(std::string(8192, 'y'));
  CHECK(text_of(within) == std::string(8192, 'y'));
  CHECK_THROWS_WITH(require_log_limit(10), ContainsSubstring("0 (keep all) or 4096 and more"));
}

TEST_CASE("who follows a log reads each byte once, however it is cut, or hears how many are missing") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  constexpr std::uint64_t limit = 16 * 1024;
  BoundedLog log(path, limit);
  log.write("of an earlier attempt\n");
  detail::BoundedLogReader reader(path, limit);
  const auto drain = [&] {
    std::string text;
    for (std::string piece = reader.read(); !piece.empty(); piece = reader.read()) text += piece;
    return text;
  };
  SECTION("close behind") {
    std::string written, read;
    for (int i = 0; i < 20'000; ++i) {
      log.write(line(i)), written += line(i);
      if (i % 50 == 0) read += drain();
    }
    read += drain();
    CHECK(detail::LogParts::of(path, limit).left_out > 0);
    CHECK((read == written));
  }
  SECTION("far behind") {
    for (int i = 0; i < 20'000; ++i) log.write(line(i));
    const std::string text = drain();
    const auto parts = detail::LogParts::of(path, limit);
    CHECK(text.starts_with(line(0)));
    CHECK(text.ends_with(line(19'999)));
    CHECK_THAT(text,
               ContainsSubstring(fmt::format("[hypertune: {} bytes of this log are left out here]\n", parts.left_out)));
    CHECK(drain().empty());
    log.write("more\n");
    CHECK(drain() == "more\n");
  }
}
