// Lines of a log from streams that are cut anywhere and resumed by whole seconds.
#include "log_machine.hpp"

#include "support/test.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;

namespace {

struct Line {
  LogTime time;
  std::string text;
  std::string bytes() const {
    char stamp[64];
    std::snprintf(stamp, sizeof stamp, "2026-01-01T00:%02d:%02d.%09d", static_cast<int>(time.seconds / 60),
                  static_cast<int>(time.seconds % 60), time.nanoseconds);
    std::string nano = stamp;  // Go leaves out zeros at the end
    while (nano.back() == '0') nano.pop_back();
    if (nano.back() == '.') nano.pop_back();
    return nano + "Z " + text + "\n";
  }
};

/// The whole second from which a server goes on.
std::int64_t second_of(const Query& query) {
  for (const auto& [name, value] : query)
    if (name == "sinceTime") return std::stoi(value.substr(14, 2)) * 60 + std::stoi(value.substr(17, 2));
  return 0;
}

}  // namespace

TEST_CASE("times are compared as numbers, not as texts") {
  CHECK(*parse_log_time("2026-01-01T00:00:00.1Z") < *parse_log_time("2026-01-01T00:00:00.12Z"));
  CHECK(*parse_log_time("2026-01-01T00:00:00.12Z") < *parse_log_time("2026-01-01T00:00:00.123456789Z"));
  CHECK(*parse_log_time("2026-01-01T00:00:00Z") < *parse_log_time("2026-01-01T00:00:00.000000001Z"));
  CHECK(*parse_log_time("2026-01-01T01:00:00.5+01:00") == *parse_log_time("2026-01-01T00:00:00.5Z"));
  for (const char* text :
       {"", "unable to retrieve", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Zx", "2026-13-41Tx0:00:00Z"})
    CHECK_FALSE(parse_log_time(text));
}

TEST_CASE("wherever streams are cut, each line comes once and whole") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Line> lines;
    LogTime time{.seconds = 1, .nanoseconds = 0};
    for (int i = 0; i < 40; ++i) {
      if (random() % 3 == 0) time.seconds += 1, time.nanoseconds = 0;
      if (random() % 2 == 0)
        time.nanoseconds =
            std::min(999'999'999, time.nanoseconds + static_cast<std::int32_t>(random() % 3 * 10'000'000));
      std::string text(random() % 4 == 0 ? 0 : random() % 3000, 'x');
      for (char& c : text) c = static_cast<char>('a' + random() % 26);
      lines.push_back({time, text});
    }
    std::string got, all;
    for (const auto& line : lines) all += line.text;
    std::size_t parts = 0;
    LogMachine machine({.pod = "p", .max_line = 1024}, [&](const LogEvent& event) {
      REQUIRE(event.kind == LogEvent::Kind::line);
      got += event.text;
      ++parts;
    });
    for (int stream = 0;; ++stream) {
      REQUIRE(stream < 1000);
      const auto since = second_of(machine.begin(true));
      std::string bytes;
      for (const auto& line : lines)
        if (line.time.seconds >= since) bytes += line.bytes();
      const bool last = stream > 6;
      if (!last) bytes.resize(random() % (bytes.size() + 1));
      for (std::size_t at = 0, n = 0; at < bytes.size(); at += n)
        machine.feed(std::string_view(bytes).substr(at, n = 1 + random() % 700));
      machine.over(last);
      if (last) break;
    }
    const bool same = got == all;  // too long to be shown
    REQUIRE(same);
    REQUIRE(parts >= lines.size());
  }
}

TEST_CASE("lines without a time are told as they are, and the last one needs no line break") {
  std::vector<std::string> got;
  LogMachine machine({.pod = "p", .container = "c", .since = "2026-01-01T00:00:00Z"}, [&](const LogEvent& event) {
    got.push_back(std::string(event.time) + "|" + std::string(event.text));
  });
  CHECK(machine.begin(false) ==
        Query{{"timestamps", "true"}, {"container", "c"}, {"sinceTime", "2026-01-01T00:00:00Z"}});
  machine.feed("unable to retrieve container logs\n2026-01-01T00:00:01Z \n2026-01-01T00:00:02Z end");
  machine.over(true);
  CHECK(got == std::vector<std::string>{"|unable to retrieve container logs", "2026-01-01T00:00:01Z|",
                                        "2026-01-01T00:00:02Z|end"});
}
