#include "support/test.hpp"

#include <hypertune/show/detail/render.hpp>
#include <hypertune/show/detail/sparkline.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace hypertune;
using detail::terminal::add_best_point;
using detail::terminal::sparkline;
using detail::terminal::takes_unicode;

TEST_CASE("a small curve is a step function from its first report to the last one") {
  CHECK(sparkline({{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 5}, {7, 6}, {8, 7}}, 8, 8) == "▁▁▁▂▄▅▇█");
  CHECK(sparkline({{1, 0.0}, {5, 1.0}}, 8, 8) == "▁▁▁▁████");
  CHECK(sparkline({{1, 3.0}, {3, 2.0}, {4, 1.0}}, 8, 8) == "███▁▁▁▁▁");
  CHECK(sparkline({{11, 0.0}, {15, 1.0}}, 18, 8) == "▁▁▁▁████");
  // What came very early and was far off does not make the rest flat.
  CHECK(sparkline({{1, 1e9}, {2, 1.0}, {8, 0.5}, {16, 0.0}}, 16, 16) == "███████▅▅▅▅▅▅▅▅▁");
  // It never has more columns than reports.
  CHECK(sparkline({{1, 0.0}, {2, 0.5}, {3, 1.0}}, 3, 16).size() == 3 * 3);
}

TEST_CASE("where there is no change to see, or no room for it, there is no curve") {
  CHECK(sparkline({}, 10, 16).empty());
  CHECK(sparkline({{1, 0.5}}, 10, 16).empty());
  CHECK(sparkline({{1, 0.5}, {2, 0.5}}, 10, 16).empty());
  CHECK(sparkline({{1, 0.0}, {2, 1.0}}, 10, 3).empty());
  CHECK(sparkline({{5, 0.0}, {5, 1.0}}, 5, 16).empty());
  constexpr double most = std::numeric_limits<double>::max();
  CHECK(sparkline({{1, -most}, {2, most}}, 16, 16).empty());
}

TEST_CASE("a curve stays small however often the best changes, and keeps its ends") {
  std::vector<BestPoint> curve;
  for (std::int64_t n = 1; n <= 100'000; ++n) {
    add_best_point(curve, {n, static_cast<double>(n)});
    REQUIRE(curve.size() <= detail::terminal::best_points);
    REQUIRE(curve.front().reports == 1);
    REQUIRE(curve.back().reports == n);
  }
  CHECK(curve.size() > 16);
  CHECK(std::is_sorted(curve.begin(), curve.end(), [](auto& a, auto& b) { return a.reports < b.reports; }));
  // A report of two objectives changes the best once.
  add_best_point(curve, {100'000, 7});
  CHECK(curve.back().value == 7);
  CHECK(sparkline(curve, 100'000, 16).size() == std::size_t{16 * 3});
}

TEST_CASE("the characters are for terminals that are said to take them") {
  CHECK(takes_unicode(nullptr, nullptr, "en_US.UTF-8", "xterm"));
  CHECK(takes_unicode("C.utf8", nullptr, nullptr, nullptr));
  CHECK(takes_unicode("", "de_DE.UTF-8", "C", "screen"));
  CHECK_FALSE(takes_unicode("C", nullptr, "en_US.UTF-8", "xterm"));
  CHECK_FALSE(takes_unicode(nullptr, nullptr, "en_US.ISO-8859-1", "xterm"));
  CHECK_FALSE(takes_unicode(nullptr, nullptr, nullptr, "xterm"));
  CHECK_FALSE(takes_unicode(nullptr, nullptr, "en_US.UTF-8", "linux"));
}

TEST_CASE("the best has its curve beside it, within the terminal's width") {
  ProgressTracker tracker;
  std::int64_t sequence = 0;
  const auto feed = [&](record::Any what) { tracker.add(Record{++sequence, 0, std::move(what)}); };
  record::ExperimentStarted start;
  start.name = "digits";
  start.objectives = {maximize("accuracy"), minimize("loss")};
  feed(start);
  tracker.tick(0);
  for (TrialId trial = 0; trial < 4; ++trial) {
    feed(record::TrialCreated{.trial = trial, .point = {}, .params = {{"lr", 0.1}}});
    feed(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {}, .gpus = {}});
    for (int step = 0; step < 4; ++step)
      feed(record::TrialReported{.trial = trial,
                                 .attempt = 0,
                                 .step = step,
                                 .metrics = {{"accuracy", 0.1 * static_cast<double>(4 * trial + step)},
                                             {"loss", 1.0 / static_cast<double>(4 * trial + step + 1)}}});
  }
  const auto lines = render(tracker.progress(), {.width = 100, .height = 30, .color = false, .unicode = true});
  CHECK_THAT(lines.at(2), Catch::Matchers::StartsWith("best  accuracy 1.5 by trial 3 at step 3  ▁▁") &&
                              ContainsSubstring("▇█  lr=0.1"));
  CHECK_THAT(lines.at(3), Catch::Matchers::StartsWith("best  loss 0.0625 by trial 3 at step 3  ██") &&
                              ContainsSubstring("▁  lr=0.1"));
  const auto plain = render(tracker.progress(), {.width = 100, .height = 30, .color = false});
  CHECK(plain.at(2) == "best  accuracy 1.5 by trial 3 at step 3  lr=0.1");
  for (std::size_t width = 1; width <= 120; ++width)
    for (const auto& line : render(tracker.progress(), {.width = width, .height = 30, .color = false, .unicode = true}))
      REQUIRE(detail::terminal::text_width(line) <= width);
}
