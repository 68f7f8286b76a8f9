#include "support/test.hpp"

#include <hypertune/random.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/percentile.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

using namespace hypertune;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

Decision report(auto& scheduler, TrialId trial, int steps, double loss) {
  return scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}});
}

}  // namespace

TEST_CASE("fifo stops nothing before its limit") {
  Fifo fifo{.max_steps = 3};
  CHECK(report(fifo, 0, 2, nan_value) == Decision::proceed);
  CHECK(report(fifo, 0, 3, 0) == Decision::complete);
  Fifo endless;
  CHECK(report(endless, 0, 1'000'000, worst_loss) == Decision::proceed);
  CHECK_THROWS_WITH(AnyScheduler(Fifo{.max_steps = -1}), ContainsSubstring("max_steps is -1"));
}

TEST_CASE("median stopping ends what is worse than the median of the running averages") {
  MedianStopping median{.grace_period = 2, .min_trials = 3};
  for (TrialId t = 0; t < 3; ++t)
    for (int step = 1; step <= 3; ++step)
      CHECK(report(median, t, step, 1.0 + static_cast<double>(t)) == Decision::proceed);
  CHECK(report(median, 3, 1, 9.0) == Decision::proceed);  // grace
  CHECK(report(median, 3, 2, 2.5) == Decision::stop);     // its best, 2.5, against averages of 1, 2 and 3
  CHECK(report(median, 4, 2, 2.0) == Decision::proceed);  // as good as the median
  CHECK(report(median, 4, 3, 9.0) == Decision::proceed);  // its best counts
  CHECK(report(median, 5, 3, nan_value) == Decision::stop);
}

TEST_CASE("median stopping agrees with the definition") {
  Rng chance(3);
  MedianStopping fast{.grace_period = 3, .min_trials = 2};
  std::map<int, std::map<TrialId, double>> averages;
  for (TrialId t = 0; t < 200; ++t) {
    double sum = 0;
    double best = worst_loss;
    for (int step = 1; step <= 12; ++step) {
      const double loss = uniform01(chance) - step * 0.05;
      sum += loss;
      best = std::min(best, loss);
      Decision expected = Decision::proceed;
      if (step >= 3 && averages[step].size() >= 2) {
        std::vector<double> others;
        for (const auto& [other, average] : averages[step]) others.push_back(average);
        std::sort(others.begin(), others.end());
        const std::size_t n = others.size();
        if (best > (others[(n - 1) / 2] + others[n / 2]) / 2) expected = Decision::stop;
      }
      averages[step][t] = sum / step;
      REQUIRE(report(fast, t, step, loss) == expected);
      if (expected == Decision::stop) break;
    }
  }
}

TEST_CASE("median stopping counts trials whose reports skip steps") {
  MedianStopping median{.min_trials = 2};
  report(median, 0, 5, 1.0);
  report(median, 1, 5, 1.0);
  CHECK(report(median, 2, 3, 2.0) == Decision::proceed);  // nobody reported at 3
  report(median, 3, 10, 1.0);                             // passed 3 and 5
  CHECK(report(median, 4, 3, 2.0) == Decision::stop);     // trials 2 and 3 were there
}

TEST_CASE("an infinite loss does not spoil an average") {
  MedianStopping median{.min_trials = 1};
  report(median, 0, 1, nan_value);
  report(median, 0, 2, 1.0);
  report(median, 0, 3, worst_loss);
  report(median, 0, 4, 1.0);
  CHECK(report(median, 1, 4, 1.5) == Decision::stop);
  CHECK(report(median, 2, 4, 0.5) == Decision::proceed);
}

TEST_CASE("percentile keeps the best part at each step") {
  Percentile percentile{.percentile = 25, .min_trials = 4};
  for (TrialId t = 0; t < 8; ++t) percentile.on_report({.trial = t, .steps = 1, .losses = {}});  // all worst
  CHECK(report(percentile, 8, 1, 5.0) == Decision::proceed);
  Percentile other{.percentile = 25, .min_trials = 4};
  for (TrialId t = 0; t < 4; ++t) report(other, t, 1, static_cast<double>(t));
  CHECK(report(other, 4, 1, 0.4) == Decision::proceed);
  CHECK(report(other, 5, 1, 2.0) == Decision::stop);
  CHECK_THROWS_WITH(AnyScheduler(Percentile{.percentile = 0}), ContainsSubstring("percentile is 0"));
}

TEST_CASE("patience ends a trial that does not improve") {
  Patience patience{.patience = 3, .min_delta = 0.1, .grace_period = 5};
  CHECK(report(patience, 0, 1, 1.0) == Decision::proceed);
  CHECK(report(patience, 0, 2, 0.95) == Decision::proceed);
  CHECK(report(patience, 0, 4, 0.95) == Decision::proceed);  // grace
  CHECK(report(patience, 0, 5, 0.5) == Decision::proceed);
  CHECK(report(patience, 0, 7, nan_value) == Decision::proceed);
  CHECK(report(patience, 0, 8, 0.45) == Decision::stop);
  CHECK(report(patience, 1, 5, nan_value) == Decision::stop);
  CHECK_THROWS_WITH(AnyScheduler(Patience{.patience = 0}), ContainsSubstring("patience is 0"));
  CHECK_THROWS_WITH(AnyScheduler(MedianStopping{.min_trials = 0}), ContainsSubstring("min_trials is 0"));
}
