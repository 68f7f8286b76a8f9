#include "minimise.hpp"
#include "support/test.hpp"

#include <hypertune/record/pareto.hpp>
#include <hypertune/search/detail/nsga_state.hpp>
#include <hypertune/search/nsga.hpp>
#include <hypertune/search/random.hpp>

#include <algorithm>
#include <cmath>

using namespace hypertune;
using namespace hypertune_test;

namespace {

detail::Fitness fitness(std::vector<double> losses, double violation = 0) {
  detail::Fitness f;
  f.losses = std::move(losses);
  f.violation = violation;
  return f;
}

using Losses = std::vector<double>;
struct MultiRun {
  std::vector<Losses> losses;
  std::vector<Point> points;
};
MultiRun optimise(AnySearcher searcher, const SearchSpace& s, const std::function<Losses(const Point&)>& f,
                  std::size_t objectives, int trials, std::uint64_t seed,
                  const std::function<Losses(const Point&)>& constraints = {}) {
  MultiRun run;
  const std::size_t learnt = constraints ? 1 : 0;
  searcher.prepare(s, {.objectives = objectives, .constraints = learnt, .samples = trials, .seed = seed});
  for (TrialId t = 0; t < trials; ++t) {
    Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(t), 5});
    const Point p = searcher.suggest({.trial = t, .rng = rng}).point;
    tell_started(searcher, t, p);
    run.losses.push_back(f(p));
    run.points.push_back(p);
    tell_ended(searcher, t, p, run.losses.back(), TrialState::completed, 1, constraints ? constraints(p) : Losses{});
  }
  return run;
}
Losses zdt1(const Point& p) {
  double g = 0;
  for (std::size_t i = 1; i < p.size(); ++i) g += p[i];
  g = 1 + 9 * g / static_cast<double>(p.size() - 1);
  return {p[0], g * (1 - std::sqrt(p[0] / g))};
}
Losses dtlz2(const Point& p) {
  double g = 0;
  for (std::size_t i = 2; i < p.size(); ++i) g += (p[i] - 0.5) * (p[i] - 0.5);
  const double a = p[0] * 1.5707963267948966, b = p[1] * 1.5707963267948966;
  return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b), (1 + g) * std::sin(a)};
}
double volume(const MultiRun& run, const Losses& reference) { return hypervolume(run.losses, reference); }

}  // namespace

TEST_CASE("fronts are those of the definition") {
  Rng rng(1);
  for (int repetition = 0; repetition < 200; ++repetition) {
    const auto n = static_cast<std::size_t>(uniform01(rng) * 40);
    const auto m = 1 + static_cast<std::size_t>(uniform01(rng) * 4);
    std::vector<detail::Fitness> all(n);
    for (auto& f : all) {
      for (std::size_t k = 0; k < m; ++k) f.losses.push_back(std::floor(uniform01(rng) * 5));
      if (uniform01(rng) < 0.1) f.losses[0] = worst_loss;
      if (uniform01(rng) < 0.2) f.violation = uniform01(rng);
      if (uniform01(rng) < 0.2) f.stopped = true;
      if (uniform01(rng) < 0.1) f.failed = true;
    }
    std::vector<const detail::Fitness*> pointers;
    for (const auto& f : all) pointers.push_back(&f);
    // Peeling: what nothing that is left dominates is the next front.
    std::vector<std::size_t> left(n);
    for (std::size_t i = 0; i < n; ++i) left[i] = i;
    for (const auto& front : detail::nondominated_fronts(pointers)) {
      std::vector<std::size_t> expected, rest;
      for (const std::size_t i : left) {
        const bool beaten =
            std::any_of(left.begin(), left.end(), [&](std::size_t j) { return dominates(all[j], all[i]); });
        (beaten ? rest : expected).push_back(i);
      }
      REQUIRE(front == expected);
      left = rest;
    }
    REQUIRE(left.empty());
  }
}
TEST_CASE("domination puts failures last, then violations, then what was stopped early") {
  detail::Fitness failed = fitness({0, 0}), stopped = fitness({0, 0}), longer = fitness({9, 9});
  failed.failed = true;
  stopped.stopped = longer.stopped = true;
  stopped.steps = 1;
  longer.steps = 3;
  CHECK(dominates(fitness({9, 9}, 5), failed));
  CHECK(dominates(fitness({9, 9}), fitness({0, 0}, 0.1)));
  CHECK(dominates(fitness({9, 9}, 0.1), fitness({0, 0}, 0.2)));
  CHECK(dominates(fitness({9, 9}), stopped));
  CHECK(dominates(longer, stopped));
  CHECK(dominates(fitness({1, 2}), fitness({1, 3})));
  CHECK_FALSE(dominates(fitness({1, 2}), fitness({2, 1})));
  CHECK_FALSE(dominates(fitness({1, 2}), fitness({1, 2})));
  CHECK(dominates(fitness({1, 2}), fitness({1, worst_loss})));
}
TEST_CASE("the crowding distance is the paper's") {
  const std::vector<detail::Fitness> all{fitness({0, 10}), fitness({1, 6}), fitness({4, 5}), fitness({10, 0})};
  std::vector<const detail::Fitness*> pointers;
  for (const auto& f : all) pointers.push_back(&f);
  const auto d = detail::crowding(pointers, {0, 1, 2, 3});
  CHECK(std::isinf(d[0]));
  CHECK(std::isinf(d[3]));
  CHECK(d[1] == Approx(0.4 + 0.5));
  CHECK(d[2] == Approx(0.9 + 0.6));
}
TEST_CASE("reference directions fill the simplex evenly") {
  CHECK(detail::reference_directions(3, 12).size() == 91);  // table I of the paper
  CHECK(detail::reference_directions(5, 6).size() == 210);
  CHECK(detail::reference_directions(2, 4) ==
        std::vector<Losses>{{0, 1}, {0.25, 0.75}, {0.5, 0.5}, {0.75, 0.25}, {1, 0}});
  CHECK(detail::reference_directions(1, 1) == std::vector<Losses>{{1}});
  for (std::size_t m = 1; m <= 12; ++m)
    for (std::size_t most : {1, 10, 50, 100}) {
      const auto all = detail::directions_for(m, most);
      CHECK(all.size() <= std::max(most, m));
      for (const auto& direction : all) {
        double sum = 0;
        for (const double x : direction) sum += x;
        CHECK(sum == Approx(1));
      }
    }
}
TEST_CASE("niches do not depend on the scale of an objective") {
  Rng rng(5);
  std::vector<detail::Fitness> plain, scaled;
  std::vector<const detail::Fitness*> p, s;
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < 30; ++i) {
    Losses x{uniform01(rng), uniform01(rng), uniform01(rng)};
    const double sum = x[0] + x[1] + x[2];
    for (double& v : x) v /= sum;
    plain.push_back(fitness(x));
    scaled.push_back(fitness({1e3 * x[0] + 7, 1e-3 * x[1], x[2] - 5}));
    front.push_back(i);
  }
  for (std::size_t i = 0; i < 30; ++i) {
    p.push_back(&plain[i]);
    s.push_back(&scaled[i]);
  }
  const auto directions = detail::reference_directions(3, 4);
  const detail::Niches a(p, front, directions), b(s, front, directions);
  for (std::size_t i = 0; i < 30; ++i) CHECK(a.niche(i) == b.niche(i));
}

TEST_CASE("crossover and mutation stay in bounds and around their parents") {
  Rng rng(2);
  double sum = 0, moved = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double a = uniform01(rng), b = uniform01(rng);
    const double x = detail::simulated_binary(a, b, 20, rng);
    REQUIRE((x >= 0 && x <= 1));
    sum += x - (a + b) / 2;
    const double y = detail::polynomial_mutation(a, 20, rng);
    REQUIRE((y >= 0 && y <= 1));
    moved += std::fabs(y - a);
  }
  CHECK(std::fabs(sum / 20'000) < 0.01);  // the parents' mean is kept
  CHECK(moved / 20'000 == Approx(0.045).margin(0.015));
  CHECK(detail::simulated_binary(0.3, 0.3, 20, rng) == 0.3);
}
TEST_CASE("a mutated discrete gene always changes") {
  const detail::Genes genes(Space<>(space(dim("n", integer(1, 3)), dim("c", choice<std::string>({"a", "b", "d"})))));
  Rng rng(4);
  for (const auto& gene : genes)
    for (int i = 0; i < 300; ++i) {
      const double x = detail::Genes::of_option(static_cast<std::size_t>(i % 3), 3);
      const double y = detail::mutated(gene, x, 20, rng);
      REQUIRE(detail::Genes::option_of(y, 3) != detail::Genes::option_of(x, 3));
    }
}

TEST_CASE("two objectives: the front of ZDT1 is covered far better than by chance") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Losses reference{1.1, 6};
    const double chance = volume(optimise(Random{}, unit_cube(6), zdt1, 2, 1000, seed), reference);
    const double best = 1.1 * 6 - (1.0 / 3);  // the ideal front, plus the strip to the right
    CHECK(volume(optimise(Nsga2{}, unit_cube(6), zdt1, 2, 1000, seed), reference) > 0.98 * best);
    CHECK(volume(optimise(Nsga3{}, unit_cube(6), zdt1, 2, 1000, seed), reference) > 0.97 * best);
    CHECK(chance < 0.9 * best);
  }
}
TEST_CASE("three objectives: DTLZ2") {
  const Losses reference{1.5, 1.5, 1.5};
  const double chance = volume(optimise(Random{}, unit_cube(7), dtlz2, 3, 400, 1), reference);
  CHECK(volume(optimise(Nsga2{}, unit_cube(7), dtlz2, 3, 400, 1), reference) > 1.05 * chance);
  CHECK(volume(optimise(Nsga3{}, unit_cube(7), dtlz2, 3, 400, 1), reference) > 1.05 * chance);
}
TEST_CASE("the front keeps to a learnt constraint") {
  const auto constraint = [](const Point& p) { return Losses{0.4 - p[0]}; };  // p[0] >= 0.4
  const auto run = optimise(Nsga2{}, unit_cube(4), zdt1, 2, 400, 3, constraint);
  int met = 0;
  for (std::size_t i = 200; i < 400; ++i) met += run.points[i][0] >= 0.4 ? 1 : 0;
  CHECK(met > 150);
}
TEST_CASE("one objective: evolution converges") {
  const auto sphere = [](const Point& p) {
    double sum = 0;
    for (const double x : p) sum += (x - 0.3) * (x - 0.3);
    return sum;
  };
  const double chance = median_best([] { return Random{}; }, unit_cube(5), sphere, 400);
  CHECK(median_best([] { return Nsga2{}; }, unit_cube(5), sphere, 400, 9, 4) < chance / 8);
}
TEST_CASE("the options of evolution are checked") {
  CHECK_THROWS_WITH(AnySearcher(Nsga2{.population_size = 2}), ContainsSubstring("nsga2: population_size is 2"));
  CHECK_THROWS_WITH(AnySearcher(Nsga3{.crossover_probability = 2}),
                    ContainsSubstring("nsga3: crossover_probability is 2"));
  CHECK_THROWS_WITH(AnySearcher(Nsga2{.mutation_probability = -1}), ContainsSubstring("mutation_probability is -1"));
  CHECK_THROWS_WITH(AnySearcher(Nsga2{.mutation_eta = -1}), ContainsSubstring("mutation_eta is -1"));
}
