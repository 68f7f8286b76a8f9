// A trial's log keeps its beginning and its end, says what it left out, and can be followed all the while.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/trial/detail/log_limit.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

using namespace hypertune;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string line(int number) { return fmt::format("line {:08d}\n", number); }

/// What a reader got of a log of such lines: each byte in its place, and where some are missing, how many.
class Followed {
 public:
  /// What is wrong with this piece; empty: nothing.
  std::string take(std::string_view piece) {
    if (piece.starts_with(detail::log_cut_begin)) {
      at_ += std::strtoull(piece.data() + detail::log_cut_begin.size(), nullptr, 10);
      piece.remove_prefix(piece.find(detail::log_cut_end) + detail::log_cut_end.size());
    }
    for (std::string wanted; !piece.empty(); piece.remove_prefix(wanted.size()), at_ += wanted.size()) {
      wanted = line(static_cast<int>(at_ / width)).substr(at_ % width, piece.size());
      if (!piece.starts_with(wanted))
        return fmt::format("at {} '{}' in place of '{}'", at_, piece.substr(0, wanted.size()), wanted);
    }
    return {};
  }
  std::uint64_t length() const { return at_; }

 private:
  static constexpr std::size_t width = 14;
  std::uint64_t at_ = 0;
};

/// Until nothing is left to read: that may never be while somebody writes.
std::string drain(detail::BoundedLogReader& reader, Followed& followed) {
  for (std::string piece = reader.read(); !piece.empty(); piece = reader.read()) {
    if (auto wrong = followed.take(piece); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

TEST_CASE("who follows a log while it is cut reads each byte once, or hears how many are missing") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  constexpr std::uint64_t limit = std::uint64_t{4} << 20U;
  constexpr int lines = 1'500'000;
  BoundedLog log(path, limit);
  detail::BoundedLogReader reader(path, limit);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < lines; i += 500) {
      std::string many;
      for (int k = i; k < i + 500; ++k) many += line(k);
      log.write(many);
    }
    done = true;
  });
  Followed followed;
  std::string wrong;
  while (!done && wrong.empty()) wrong = followed.take(reader.read());
  writer.join();
  if (wrong.empty()) wrong = drain(reader, followed);
  CHECK(wrong == "");
  CHECK(followed.length() == lines * line(0).size());
}

TEST_CASE("a log whose writer is killed in the midst of a cut is still read, and written on") {
  constexpr std::uint64_t limit = std::uint64_t{1} << 20U;
  for (int round = 0; round < 12; ++round) {
    const TemporaryDirectory directory;
    const auto path = directory.path() / "log";
    detail::BoundedLogReader reader(path, limit), late(path, limit);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      BoundedLog log(path, limit);
      for (int i = 0;;) {
        std::string many;
        for (int k = 0; k < 4000; ++k, ++i) many += line(i);
        log.write(many);
      }
    }
    Followed followed;
    std::string wrong;
    while (followed.length() < 3 * limit && wrong.empty()) wrong = followed.take(reader.read());
    for (int i = 0; i < round * 40 && wrong.empty(); ++i) wrong = followed.take(reader.read());
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    if (wrong.empty()) wrong = drain(reader, followed);
    CHECK(wrong == "");
    Followed anew;
    CHECK(drain(late, anew) == "");
    CHECK(anew.length() == followed.length());
    // The next attempt writes on, to the end of the line first.
    std::string next;
    std::uint64_t at = detail::LogParts::of(path, limit).length();
    const auto size = line(0).size();
    if (at % size != 0) next = line(static_cast<int>(at / size)).substr(at % size), at += next.size();
    for (std::uint64_t i = at / size; next.size() < 600'000; ++i) next += line(static_cast<int>(i));
    const std::uint64_t before = detail::LogParts::of(path, limit).length();
    BoundedLog(path, limit).write(next);
    CHECK(drain(reader, followed) == "");
    CHECK(followed.length() == before + next.size());
  }
}

TEST_CASE("each moment of a cut can be read") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "log";
  constexpr std::uint64_t limit = 4096;
  std::string all;
  for (int i = 0; i < 400; ++i) all += line(i);
  const std::string head = all.substr(0, limit / 2), last = all.substr(5600 - 700);
  const auto is_read = [&](const std::string& file) {
    std::ofstream(path, std::ios::binary) << file;
    detail::BoundedLogReader reader(directory.path() / "none", limit);
    reader = detail::BoundedLogReader(path, limit);
    const auto parts = detail::LogParts::of(path, limit);
    CHECK(parts.length() == all.size());
    CHECK(parts.left_out == all.size() - head.size() - last.size());
    BoundedLog(path, limit).write("more\n");
    CHECK(text_of(path).ends_with(last.substr(last.size() - 100) + "more\n"));
    CHECK(detail::LogParts::of(path, limit).length() == all.size() + 5);
    CHECK(reader.read() == "more\n");
  };
  const auto left_out = all.size() - head.size() - last.size();
  const std::string done =
      fmt::format("\n[hypertune: {} bytes of this log are left out here, log_limit is 4096]\n", left_out);
  const auto cut = [&](std::string text) {
    text.resize(done.size() - 2, ' ');
    return text + "]\n";
  };
  const std::string junk(900, 'x');
  SECTION("the end is being copied") {
    const auto place = head.size() + done.size() + junk.size();
    is_read(head + cut(fmt::format("\n[hypertune: {} bytes cut: goes on at {}", left_out, place)) + junk + last);
  }
  SECTION("the end has been copied, and stands there twice") {
    const auto place = head.size() + done.size() + last.size();
    is_read(head + cut(fmt::format("\n[hypertune: {} bytes cut: ends at {}", left_out, place)) + last + junk);
  }
  SECTION("it stands there once") {
    const auto place = head.size() + done.size() + last.size();
    is_read(head + cut(fmt::format("\n[hypertune: {} bytes cut: ends at {}", left_out, place)) + last);
  }
  SECTION("it is done") { is_read(head + done + last); }
}

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
