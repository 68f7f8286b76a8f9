#include "support/test.hpp"

#include <hypertune/random.hpp>
#include <hypertune/schedule/detail/friedman.hpp>
#include <hypertune/schedule/detail/paired_tests.hpp>
#include <hypertune/schedule/racing.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

using namespace hypertune;

namespace {

double normal(Rng& rng) { return detail::normal_quantile(std::max(uniform01(rng), 1e-12)); }

/// A race of trials whose values are difficulty of the instance + quality + noise. Returns the steps each got.
std::vector<int> race(AnyScheduler scheduler, const std::vector<double>& qualities, int instances, double noise,
                      std::uint64_t seed, bool means = true, double spread = 10) {
  Rng rng(seed);
  std::vector<double> difficulty(static_cast<std::size_t>(instances));
  for (double& d : difficulty) d = spread * normal(rng);
  std::vector<int> steps;
  for (std::size_t t = 0; t < qualities.size(); ++t) {
    const auto trial = static_cast<TrialId>(t);
    scheduler.on_create(trial);
    double sum = 0;
    steps.push_back(0);
    for (int i = 0; i < instances; ++i) {
      const double value = difficulty[static_cast<std::size_t>(i)] + qualities[t] + noise * normal(rng);
      sum += value;
      const double loss = means ? sum / (i + 1) : value;
      steps.back() = i + 1;
      const auto decision = scheduler.on_report({.trial = trial, .steps = i + 1, .losses = {&loss, 1}});
      if (decision == Decision::proceed) continue;
      scheduler.on_end(trial, decision == Decision::stop ? TrialState::stopped : TrialState::completed);
      break;
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("the tests are those of the tables") {
  // scipy.stats: t.sf, ttest_rel(alternative="greater"), wilcoxon(alternative="greater").
  CHECK(detail::student_upper(2.0, 5) == Approx(0.05096973941492917));
  CHECK(detail::student_upper(-1.0, 1) == Approx(0.75));
  CHECK(detail::student_upper(1.959963984540054, 1e7) == Approx(0.025).epsilon(1e-4));
  CHECK(detail::student_upper(0, 3) == Approx(0.5));
  CHECK(detail::student_upper(30, 4) == Approx(3.67e-6).epsilon(0.01));
  const std::vector<double> d{1.1, -0.4, 2.3, 0.7, 3.1, -0.2};
  CHECK(detail::paired_t_test(d) == Approx(0.05428994757608426));
  CHECK(detail::signed_rank_test(d) == Approx(5.0 / 64));
  CHECK(detail::signed_rank_test(std::vector<double>{1, 2, 3, 4, 5}) == Approx(1.0 / 32));
  CHECK(detail::signed_rank_test(std::vector<double>{-1, -2, -3}) == Approx(1));
  // Degenerate ones.
  CHECK(detail::paired_t_test(std::vector<double>{1, 1, 1}) == 0);
  CHECK(detail::paired_t_test(std::vector<double>{0, 0, 0}) == 1);
  CHECK(detail::paired_t_test(std::vector<double>{-1, -1}) == 1);
  CHECK(detail::paired_t_test(std::vector<double>{3}) == 1);
  CHECK(detail::signed_rank_test(std::vector<double>{0, 0}) == 1);
}
TEST_CASE("Friedman's test and the comparison after it are those of the book") {
  // Conover, section 5.8, example 1: four kinds of grass, ranked in twelve homes; F = 3.19, p < 0.05; sums of ranks
  // 38, 23.5, 24.5, 34; least significant difference 11.48.
  const std::vector<std::vector<double>> grass{{4, 4, 3, 3, 4, 2, 1, 2, 3.5, 4, 4, 3.5},
                                               {3, 2, 1.5, 1, 2, 2, 3, 4, 1, 1, 2, 1},
                                               {2, 3, 1.5, 2, 1, 2, 2, 1, 2, 3, 3, 2},
                                               {1, 1, 4, 4, 3, 4, 4, 3, 3.5, 2, 1, 3.5}};
  std::vector<std::span<const double>> series(grass.begin(), grass.end());
  CHECK(detail::friedman_worse(series, 1) == 1);
  CHECK(detail::friedman_worse(series, 0) < 0.05);
  CHECK(detail::friedman_worse(series, 0) > 0.01);
  CHECK(detail::friedman_worse(series, 2) > 0.5);
  CHECK(detail::friedman_worse(series, 3) == Approx(0.072).margin(0.01));  // 10.5 apart
  // All blocks agree; all series are equal; infinite values.
  const std::vector<double> low{1, 10, 100}, middle{2, 20, 200}, high{3, 30, worst_loss};
  CHECK(detail::friedman_worse({low, middle, high}, 2) == 0);
  CHECK(detail::friedman_worse({low, low, low}, 1) == 1);
}

TEST_CASE("Friedman's test with the comparison after it keeps its level") {
  Rng rng(13);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::vector<double>> values(5, std::vector<double>(12));
    for (auto& v : values)
      for (double& x : v) x = normal(rng);
    rejected += detail::friedman_worse({values.begin(), values.end()}, 0) < 0.05 ? 1 : 0;
  }
  CHECK(rejected < 100);  // at most 5 %: it takes both tests, and to be worse
  CHECK(rejected > 5);
}

TEST_CASE("side by side, Friedman's test drops what is worse and keeps the best whatever the scale of instances") {
  int kept = 0, dropped = 0, instances = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    AnyScheduler scheduler = Race{.instances = 40, .test = RaceTest::friedman, .reports = RaceReports::value};
    Rng rng(seed);
    constexpr int trials = 8;
    for (TrialId t = 0; t < trials; ++t) scheduler.on_create(t);
    std::vector<bool> out(trials, false);
    for (int i = 0; i < 40; ++i) {
      const double scale = std::exp(4 * normal(rng));  // instances from trivial to very hard
      for (TrialId t = 0; t < trials; ++t) {
        if (out[static_cast<std::size_t>(t)]) continue;
        const double loss = scale * (10 + (t < 2 ? 0 : 1.5) + normal(rng));
        ++instances;
        const auto decision = scheduler.on_report({.trial = t, .steps = i + 1, .losses = {&loss, 1}});
        if (decision == Decision::proceed) continue;
        out[static_cast<std::size_t>(t)] = decision == Decision::stop;
        scheduler.on_end(t, decision == Decision::stop ? TrialState::stopped : TrialState::completed);
      }
    }
    kept += out[0] && out[1] ? 0 : 1;
    for (std::size_t t = 2; t < trials; ++t) dropped += out[t] ? 1 : 0;
  }
  CHECK(kept >= 19);
  CHECK(dropped > 100);  // of 120
  CHECK(instances < 20 * 8 * 40 / 2);
}

TEST_CASE("both tests keep their level") {
  Rng rng(12);
  int t = 0, w = 0, tied = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> d(12), coarse(30);
    for (double& x : d) x = normal(rng);
    for (double& x : coarse) x = std::round(normal(rng));
    t += detail::paired_t_test(d) < 0.05 ? 1 : 0;
    w += detail::signed_rank_test(d) < 0.05 ? 1 : 0;
    tied += detail::signed_rank_test(coarse) < 0.05 ? 1 : 0;
  }
  CHECK(t == Approx(200).margin(45));
  CHECK(w == Approx(190).margin(50));
  CHECK(tied == Approx(190).margin(50));
}

TEST_CASE("what is worse is dropped early though instances differ far more than configurations") {
  for (const auto test : {RaceTest::t, RaceTest::wilcoxon})
    for (const bool means : {true, false}) {
      const Race options{
          .instances = 30, .test = test, .reports = means ? RaceReports::running_mean : RaceReports::value};
      double worse = 0;
      int complete = 0;
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto steps = race(options, {0, 1, 1, 1, 1}, 30, 0.5, seed, means);
        complete += steps[0] == 30 ? 1 : 0;
        for (std::size_t i = 1; i < 5; ++i) worse += steps[i] / 80.0;
      }
      CHECK(complete == 20);
      CHECK(worse < 16);  // Wilcoxon needs 10 instances at least for a level of 0.05 / 26
    }
}
TEST_CASE("what is as good is rarely dropped") {
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    dropped += race(Race{.instances = 20}, {0, 0}, 20, 1, seed)[1] < 20 ? 1 : 0;
  CHECK(dropped <= 22);  // 5 % and its spread
  dropped = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    dropped += race(Race{.instances = 0}, {0, 0}, 20, 1, seed)[1] < 20 ? 1 : 0;
  CHECK(dropped <= 22);
}
TEST_CASE("a better trial takes the lead and others are measured by it") {
  const auto steps = race(Race{.instances = 20}, {5, 0, 5, 4}, 20, 0.2, 3);
  CHECK(steps[0] == 20);
  CHECK(steps[1] == 20);
  CHECK(steps[2] == 5);
  CHECK(steps[3] == 5);
}
TEST_CASE("an infinite mean cannot win") {
  AnyScheduler scheduler = Race{.instances = 10};
  const double one = 1, infinite = worst_loss;
  CHECK(scheduler.on_report({.trial = 0, .steps = 1, .losses = {&infinite, 1}}) ==
        Decision::proceed);  // nothing better
  CHECK(scheduler.on_report({.trial = 1, .steps = 1, .losses = {&one, 1}}) == Decision::proceed);
  CHECK(scheduler.on_report({.trial = 0, .steps = 2, .losses = {&infinite, 1}}) == Decision::stop);
  CHECK(scheduler.on_report({.trial = 2, .steps = 1, .losses = {&infinite, 1}}) == Decision::stop);
}
TEST_CASE("a best trial that fails is no measure any more") {
  AnyScheduler scheduler = Race{};
  for (int step = 1; step <= 10; ++step) {
    const double good = step % 2, bad = good + 3;
    CHECK(scheduler.on_report({.trial = 0, .steps = step, .losses = {&good, 1}}) == Decision::proceed);
    if (step < 5) CHECK(scheduler.on_report({.trial = 1, .steps = step, .losses = {&bad, 1}}) == Decision::proceed);
  }
  scheduler.on_end(0, TrialState::failed);
  const double bad = 4;
  CHECK(scheduler.on_report({.trial = 1, .steps = 5, .losses = {&bad, 1}}) == Decision::proceed);
}
TEST_CASE("race says which option makes no sense") {
  CHECK_THROWS_WITH(AnyScheduler(Race{.instances = -1}), ContainsSubstring("instances is -1"));
  CHECK_THROWS_WITH(AnyScheduler(Race{.grace_period = 1}), ContainsSubstring("grace_period is 1"));
  CHECK_THROWS_WITH(AnyScheduler(Race{.alpha = 0}), ContainsSubstring("alpha is 0"));
}
