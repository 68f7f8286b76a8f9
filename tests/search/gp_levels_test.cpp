#include "support/test.hpp"

#include <hypertune/schedule/asha.hpp>
#include <hypertune/search/detail/gp/chain.hpp>
#include <hypertune/search/detail/gp/state.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::detail::gp;

namespace {

double square(double x) { return x * x; }

SearchSpace cube(int n) {
  std::vector<Dim<>> dims;
  for (int i = 0; i < n; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(0.0, 1.0)));
  return Space<>(std::move(dims)).search_space();
}

using Curve = std::function<double(const Point&, int)>;

struct Trials {
  std::vector<Point> points;
  std::vector<int> steps;
  double best = worst_loss;  // at the end of a trial that went all the way
};

/// One trial after another under ASHA, until `budget` steps are done.
Trials under_asha(AnySearcher searcher, const SearchSpace& space, const Curve& curve, int max, int budget,
                  std::uint64_t seed) {
  Trials result;
  Asha asha{.grace_period = 1, .max_steps = max, .reduction_factor = 3};
  searcher.prepare(space, {.seed = seed});
  int used = 0;
  for (TrialId t = 0; used < budget; ++t) {
    Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(t)});
    const Point p = searcher.suggest({.trial = t, .rng = rng}).point;
    searcher.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    for (int step = 1;; ++step) {
      ++used;
      const double loss = curve(p, step);
      searcher.observe(
          {.kind = Observation::Kind::report, .trial = t, .point = p, .steps = step, .losses = {&loss, 1}});
      const Decision decision = asha.on_report({.trial = t, .steps = step, .losses = {&loss, 1}});
      if (decision == Decision::proceed) continue;
      const bool whole = decision == Decision::complete;
      if (whole) result.best = std::min(result.best, loss);
      searcher.observe({.kind = Observation::Kind::ended,
                        .trial = t,
                        .point = p,
                        .steps = step,
                        .losses = {&loss, 1},
                        .state = whole ? TrialState::completed : TrialState::stopped});
      result.points.push_back(p);
      result.steps.push_back(step);
      break;
    }
  }
  return result;
}

Model model_of(const std::vector<double>& at, std::vector<double> outputs) {
  Inputs inputs({0});
  for (const double x : at) inputs.add({&x, 1});
  auto model = Model::of(std::move(inputs), std::move(outputs), HyperPrior(1).start(1, 0.3, 1e-6));
  REQUIRE(model);
  return std::move(*model);
}

}  // namespace

TEST_CASE("levels are where a scheduler's rungs are, and each has more trials than the one above") {
  std::vector<int> reached(200, 1);
  for (int i = 0; i < 66; ++i) reached[static_cast<std::size_t>(i)] = 3;
  for (int i = 0; i < 22; ++i) reached[static_cast<std::size_t>(i)] = 9;
  for (int i = 0; i < 7; ++i) reached[static_cast<std::size_t>(i)] = 27;
  reached[0] = reached[1] = Arrival::whole;
  REQUIRE(level_steps(reached, 5) == std::vector<int>{1, 3, 9, 27});
  REQUIRE(level_steps(reached, 2) == std::vector<int>{1, 3, 9, 27, Arrival::whole});
  REQUIRE(level_steps({5, 5, 5}, 5) == std::vector<int>{5});
  REQUIRE(level_steps({7, 2}, 5) == std::vector<int>{2});
  REQUIRE(level_steps({}, 5).empty());
  std::vector<int> all;  // stopped anywhere
  for (int i = 1; i <= 500; ++i) all.push_back(i);
  const auto steps = level_steps(all, 5);
  REQUIRE(steps.size() < 20);
  REQUIRE(steps.front() == 1);
  REQUIRE(steps.back() == 496);
  REQUIRE(std::is_sorted(steps.begin(), steps.end()));
}

TEST_CASE("a level rises with the one below it, never against it") {
  const std::vector<double> below = {-1, -0.5, 0, 0.5, 1};
  std::vector<double> falls, rises, many_below, many;
  for (const double x : below) {
    falls.push_back(-1.4 * x);
    rises.push_back(1.4 * x);
  }
  REQUIRE(slope_between(below, falls) == 0);
  REQUIRE(slope_between(below, rises) > 1);
  for (int i = 0; i < 200; ++i) {
    many_below.push_back(i / 200.0);
    many.push_back(std::sqrt(12.0) * i / 200.0);
  }
  REQUIRE(slope_between(many_below, many) == Approx(std::sqrt(12.0)).epsilon(0.05));
  REQUIRE(std::isfinite(slope_between({1, 1, 1}, {1, 2, 3})));
}

TEST_CASE("a chain goes through what was measured above, and along what was measured below") {
  // Above: 2 f + 0.5, measured in three places out of nine.
  const auto f = [](double x) { return std::sin(7 * x); };
  std::vector<double> x, y, high_x, difference;
  for (int i = 0; i <= 8; ++i) {
    x.push_back(i / 8.0);
    y.push_back(f(x.back()));
    if (i % 4 != 0) continue;
    high_x.push_back(x.back());
    difference.push_back(0.5);
  }
  Chain chain(model_of(x, y));
  chain.add(2, model_of(high_x, difference));
  Posterior p, below;
  for (const double at : {0.0, 0.125, 0.5, 0.8, 1.0}) {
    chain.posterior(std::vector<double>{at}, p, true);
    REQUIRE(p.mean == Approx(2 * f(at) + 0.5).margin(0.15));
    chain[0].posterior(std::vector<double>{at}, below, false);
    REQUIRE(p.variance >= 4 * below.variance);
  }
  // Who is expected below the bar passes.
  chain = Chain();
  chain.add(0, model_of(x, y), 0.0);
  chain.add(2, model_of(high_x, difference));
  double good = 0, bad = 0;
  chain.posterior(std::vector<double>{0.66}, p, false, &good);  // f is about -1
  chain.posterior(std::vector<double>{0.22}, p, false, &bad);   // and about 1
  REQUIRE(good > -0.01);
  REQUIRE(bad < -10);
  // A pending trial narrows the levels that it has not come to.
  chain.posterior(std::vector<double>{0.3}, p, false);
  const double before = p.variance;
  const std::size_t size = chain[0].size();
  chain.add_pending(std::vector<double>{0.3}, 1);
  chain.posterior(std::vector<double>{0.3}, p, false);
  REQUIRE(p.variance < before);
  REQUIRE(chain[0].size() == size);
}

TEST_CASE("gp makes more of a scheduler that stops trials than random search does") {
  struct Case {
    std::string name;
    int dimensions;
    Curve curve;
  };
  const std::vector<Case> cases = {
      {"parallel curves", 3,
       [](const Point& x, int step) {
         return square(x[0] - 0.3) + 2 * square(x[1] - 0.7) + square(x[2] - 0.45) + 1.0 / (1 + step);
       }},
      {"a rate that is too great diverges", 3,
       [](const Point& x, int step) {
         const double rate = std::pow(10.0, 4 * x[0] - 3);
         if (rate > 3) return step > 2 ? worst_loss : 5.0;
         return 0.1 + square(x[1] - 0.6) + square(x[2] - 0.2) + 2 / (1 + rate * step);
       }},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    std::vector<double> ours, random;
    for (const std::uint64_t seed : {1, 2, 3}) {
      ours.push_back(under_asha(GaussianProcess{}, cube(c.dimensions), c.curve, 27, 450, seed).best);
      random.push_back(under_asha(Random{}, cube(c.dimensions), c.curve, 27, 450, seed).best);
    }
    std::sort(ours.begin(), ours.end());
    std::sort(random.begin(), random.end());
    const double least = c.curve({0.3, 0.7, 0.45}, 27);
    CAPTURE(ours, random, least);
    REQUIRE(ours[1] < random[1]);
    REQUIRE(ours[2] < random[2]);
  }
}

TEST_CASE("gp does not ask for ever for what is stopped at once") {
  // What begins slowly ends best: a model of the ends alone goes there, and learns nothing when ASHA stops it.
  const Curve curve = [](const Point& x, int step) {
    return 0.3 * square(x[0]) + square(x[1] - 0.5) + 1.2 * std::exp(-std::exp(5 * x[0] - 3) * step / 3);
  };
  std::vector<double> shares;  // of the later half of the trials
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const Trials trials = under_asha(GaussianProcess{}, cube(2), curve, 27, 600, seed);
    const auto later = trials.steps.begin() + static_cast<std::ptrdiff_t>(trials.steps.size() / 2);
    const auto gone_on = std::count_if(later, trials.steps.end(), [](int steps) { return steps > 1; });
    shares.push_back(static_cast<double>(gone_on) / static_cast<double>(trials.steps.end() - later));
  }
  std::sort(shares.begin(), shares.end());
  CAPTURE(shares);
  REQUIRE(shares[2] > 1.0 / 3);
  REQUIRE(shares[0] > 0.1);
}

TEST_CASE("gp learns from trials that wait for a scheduler and never end") {
  const SearchSpace s = cube(2);
  GaussianProcess gp;
  gp.prepare(s, {.parallelism = 2});
  double least = worst_loss;
  for (TrialId t = 0; t < 45; ++t) {
    Rng rng = derived_rng(3, {static_cast<std::uint64_t>(t)});
    const Point p = gp.suggest({.trial = t, .rng = rng}).point;
    gp.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    const double off = square(p[0] - 0.3) + square(p[1] - 0.6);
    for (int step = 1; step <= (t % 4 == 0 ? 9 : 3); ++step) {
      const double loss = off + 1.0 / step;
      gp.observe({.kind = Observation::Kind::report, .trial = t, .point = p, .steps = step, .losses = {&loss, 1}});
    }
    if (t > 30) least = std::min(least, off);
  }
  REQUIRE(gp.state_->history.ended.empty());
  REQUIRE(least < 1e-3);
}

TEST_CASE("gp answers the same under a scheduler whether or not it was asked on the way") {
  const SearchSpace s = cube(3);
  for (const std::size_t objectives : {1, 2}) {
    GaussianProcess asked, told;
    for (auto* gp : {&asked, &told}) gp->prepare(s, {.objectives = objectives, .parallelism = 3});
    Rng points(3);
    for (TrialId t = 0; t < 60; ++t) {
      Rng rng = derived_rng(1, {static_cast<std::uint64_t>(t)});
      asked.suggest({.trial = t, .rng = rng});
      const Point p = s.sample(points);
      const int last = t % 3 == 0 ? 27 : t % 3 == 1 ? 3 : 1;
      for (auto* gp : {&asked, &told}) {
        gp->observe({.kind = Observation::Kind::started, .trial = t, .point = p});
        std::vector<double> losses;
        for (int step = 1; step <= last; ++step) {
          losses.assign(objectives, square(p[0] - 0.4) + 0.5 / step);
          losses.back() += square(p[1] - 0.1);
          gp->observe({.kind = Observation::Kind::report, .trial = t, .point = p, .steps = step, .losses = losses});
        }
        if (t % 7 == 5) continue;  // waits
        const TrialState state = t % 11 == 6 ? TrialState::failed
                                 : last < 27 ? TrialState::stopped
                                             : TrialState::completed;
        gp->observe({.kind = Observation::Kind::ended,
                     .trial = t,
                     .point = p,
                     .steps = last,
                     .losses = losses,
                     .state = state});
      }
    }
    Rng one(9), other(9);
    const Point a = asked.suggest({.trial = 60, .rng = one}).point, b = told.suggest({.trial = 60, .rng = other}).point;
    REQUIRE(a == b);
  }
}

TEST_CASE("gp goes on where all that is reported under a scheduler says nothing") {
  for (const double loss : {worst_loss, 0.0, 1e308}) {
    const Trials trials = under_asha(GaussianProcess{}, cube(2), [&](const Point&, int) { return loss; }, 9, 120, 1);
    REQUIRE(trials.points.size() >= 10);
  }
}
