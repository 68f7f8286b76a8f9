// Tpe: its densities against integrals and a plain reference, its splits, and that it finds more than chance does.
#include "support/test.hpp"

#include <hypertune/record/pareto.hpp>
#include <hypertune/search/detail/parzen.hpp>
#include <hypertune/search/detail/trial_ranking.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/tpe.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A row of model coordinates for each point.
struct Sample {
  detail::ParzenSpace model;
  std::vector<std::vector<double>> rows;
  std::vector<const double*> pointers;
  Sample(const SearchSpace& space, int n, std::uint64_t seed) : model(space) {
    Rng rng(seed);
    for (int i = 0; i < n; ++i) {
      rows.emplace_back(model.size());
      model.to_model(space, space.sample(rng), rows.back().data());
    }
    for (const auto& row : rows) pointers.push_back(row.data());
  }
  std::vector<double> weights() const {
    std::vector<double> result;
    for (std::size_t i = 0; i < rows.size(); ++i) result.push_back(1.0 + static_cast<double>(i % 3));
    return result;
  }
};

struct Finished {
  double loss = 0;
  std::vector<double> losses{};
  std::vector<double> constraints{};
  int steps = 1;
  TrialState state = TrialState::completed;
};

template <class S>
void tell(S& searcher, TrialId trial, const Point& point, const Finished& result) {
  const std::vector<double> losses = result.losses.empty() ? std::vector{result.loss} : result.losses;
  searcher.observe({.kind = Observation::Kind::started, .trial = trial, .point = point});
  searcher.observe({.kind = Observation::Kind::ended,
                    .trial = trial,
                    .point = point,
                    .steps = result.steps,
                    .losses = losses,
                    .constraints = result.constraints,
                    .state = result.state});
}

template <class S>
Point ask(S& searcher, TrialId trial, std::uint64_t seed) {
  Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(trial), 1});
  return searcher.suggest({.trial = trial, .rng = rng}).point;
}

/// The points that a searcher tries, one after the other; fewer where it is exhausted.
template <class S>
std::vector<Point> run(S searcher, const SearchSpace& space, int trials, std::uint64_t seed, SearchContext goal,
                       const std::function<Finished(const Point&)>& f) {
  goal.seed = seed;
  goal.samples = trials;
  searcher.prepare(space, goal);
  std::vector<Point> points;
  for (TrialId trial = 0; trial < trials; ++trial) {
    Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(trial), 1});
    const auto suggestion = searcher.suggest({.trial = trial, .rng = rng});
    if (suggestion.kind == Suggestion::Kind::exhausted) break;
    points.push_back(suggestion.point);
    tell(searcher, trial, points.back(), f(points.back()));
  }
  return points;
}

SearchSpace box(int n) {
  std::vector<Dim<Params>> dims;
  for (int i = 0; i < n; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(-2, 3)));
  return Space<>(dims);
}

double quadratic(const Point& p) {
  double sum = 0;
  for (std::size_t d = 0; d < p.size(); ++d) sum += (1 + static_cast<double>(d)) * (p[d] - 1.3) * (p[d] - 1.3);
  return sum;
}

}  // namespace

TEST_CASE("a Parzen estimator is a density over the unit cube, whatever the dimensions are") {
  const auto options = std::vector<std::string>{"a", "b", "c"};
  const std::vector<SearchSpace> spaces{
      hypertune::space(dim("x", uniform(0, 1))),
      hypertune::space(dim("x", log_uniform(1e-4, 1)), dim("y", normal(0, 1))),
      hypertune::space(dim("n", log_int(1, 40)), dim("q", quantized(0, 1, 0.25)), dim("c", choice(options))),
      hypertune::space(dim("n", integer(0, 1'000)), dim("o", ordinal(options)), dim("b", boolean())),
      hypertune::space(dim("c", choice(options)), dim("x", uniform(0, 1)).when("c", "a"),
                       dim("y", integer(1, 5)).when("c", "b"), dim("z", boolean()).when_between("y", 2, 4))};
  for (const auto& space : spaces)
    for (const bool neighbours : {true, false})
      for (const int n : {1, 2, 25}) {
        INFO(space.describe() << n << " kernels, neighbours: " << neighbours);
        const Sample sample(space, n, 5);
        detail::ParzenEstimator estimator;
        estimator.fit(sample.model, sample.pointers, sample.weights(),
                      {.factor = neighbours ? 1.0 : 0.5, .least = 0.01, .flip = 0.3, .neighbours = neighbours});
        const Sample uniform(space, 100'000, 9);
        double sum = 0;
        for (const auto* row : uniform.pointers) sum += std::exp(estimator.log_density(row));
        CHECK(sum / 100'000 == Approx(1).margin(0.04));
      }
}

TEST_CASE("its draws follow its density") {
  const auto space = hypertune::space(dim("x", uniform(0, 1)), dim("n", integer(0, 6)), dim("c", choice({1, 2, 3, 4})));
  const Sample sample(space, 12, 3);
  detail::ParzenEstimator estimator;
  estimator.fit(sample.model, sample.pointers, sample.weights(), {.factor = 0.4, .flip = 0.2, .neighbours = false});
  constexpr int n = 100'000;
  Rng rng(8);
  std::vector<double> drawn(4), expected(4), row(3);
  const auto count = [](const double* r, double weight, std::vector<double>& into) {
    into[0] += r[0] < 0.3 ? weight : 0;
    into[1] += r[1] == 2 ? weight : 0;
    into[2] += r[2] == 1 ? weight : 0;
    into[3] += r[0] > 0.5 && r[1] > 3 && r[2] != 0 ? weight : 0;
  };
  for (int i = 0; i < n; ++i) {
    estimator.sample(rng, row.data());
    count(row.data(), 1.0 / n, drawn);
  }
  for (const auto* r : Sample(space, n, 10).pointers) count(r, std::exp(estimator.log_density(r)) / n, expected);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i] == Approx(expected[i]).margin(0.015));
}

TEST_CASE("its density is that of a plain mixture of truncated normals") {
  const auto space = hypertune::space(dim("x", uniform(0, 1)), dim("y", uniform(0, 1)));
  const std::vector<std::vector<double>> rows{{0.1, 0.5}, {0.2, 0.9}, {0.7, 0.4}};
  const std::vector<const double*> pointers{rows[0].data(), rows[1].data(), rows[2].data()};
  const std::vector<double> weights{1, 2, 1};
  detail::ParzenSpace model(space);
  detail::ParzenEstimator estimator;
  estimator.fit(model, pointers, weights, {.least = 0.15});
  // Farther neighbours, the ends included: x: 0.1 (0 | 0.2), 0.2 (0.1 | 0.7), 0.7 (0.2 | 1); y: 0.4, 0.5, 0.9.
  const std::vector<std::vector<double>> widths{{0.15, 0.4}, {0.5, 0.4}, {0.5, 0.4}};
  const auto normal = [](double x, double mean, double sd) {
    const double z = (x - mean) / sd;
    const double mass = detail::normal_cdf((1 - mean) / sd) - detail::normal_cdf(-mean / sd);
    return std::exp(-z * z / 2) / (sd * 2.50662827463100050242 * mass);
  };
  for (const auto& [x, y] : {std::pair{0.3, 0.3}, {0.0, 1.0}, {0.15, 0.55}}) {
    double density = 1.0 / 5;  // the uniform component weighs as much as one kernel
    for (std::size_t k = 0; k < 3; ++k)
      density += weights[k] / 5 * normal(x, rows[k][0], widths[k][0]) * normal(y, rows[k][1], widths[k][1]);
    const std::vector<double> row{x, y};
    CHECK(estimator.log_density(row.data()) == Approx(std::log(density)).epsilon(1e-12));
  }
}

TEST_CASE("a density that is enough need not be known exactly") {
  const auto options = std::vector<std::string>{"a", "b", "c"};
  const std::vector<SearchSpace> spaces{
      hypertune::space(dim("x", uniform(0, 1)), dim("n", integer(0, 6)), dim("c", choice(options))),
      hypertune::space(dim("c", choice(options)), dim("x", uniform(0, 1)).when("c", "a"))};
  for (const auto& space : spaces)
    for (const int n : {1, 40, 300}) {
      const Sample sample(space, n, 5);
      detail::ParzenEstimator estimator;
      estimator.fit(sample.model, sample.pointers, sample.weights(), {.least = 0.01});
      for (const auto* row : Sample(space, 200, 9).pointers) {
        const double exact = estimator.log_density(row);
        for (const double less : {1e-9, 0.5, 3.0, 1e3, infinity})
          CHECK(estimator.log_density(row, exact - less) == infinity);
        for (const double more : {1e-9, 0.5, 3.0, 1e3, infinity})
          CHECK(estimator.log_density(row, exact + more) == exact);
      }
    }
}

TEST_CASE("trials are ranked by what says most") {
  detail::TrialRanking ranking(1, 1);
  const Point nowhere;
  const auto add = [&](TrialId trial, double loss, int steps, TrialState state, double constraint) {
    const std::vector<double> losses{loss}, constraints{constraint};
    ranking.observe({.kind = state == TrialState::running ? Observation::Kind::report : Observation::Kind::ended,
                     .trial = trial,
                     .point = nowhere,
                     .steps = steps,
                     .losses = losses,
                     .constraints = constraints,
                     .state = state});
  };
  add(0, 5, 9, TrialState::completed, -1);
  add(1, 0.1, 9, TrialState::completed, 0.5);          // violates
  add(2, 1, 3, TrialState::stopped, 0);                // fewer steps
  add(3, 3, 3, TrialState::running, std::nan(""));     // not known: not held against it
  add(4, 0.01, 9, TrialState::failed, -1);             // failed
  add(5, 4, 9, TrialState::completed, -1);             // best of those that ran to the end
  add(6, std::nan(""), 9, TrialState::completed, -1);  // worst of them
  add(7, 0.1, 1, TrialState::running, 0);              // one step only
  const auto order = ranking.order();
  CHECK(std::vector<std::uint32_t>(order.begin(), order.end()) == std::vector<std::uint32_t>{5, 0, 6, 2, 3, 7, 1, 4});
  CHECK(ranking.pending().size() == 2);
  CHECK(ranking.useful() == 6);
  add(7, 0.5, 20, TrialState::stopped, 0);  // … it went on
  CHECK(ranking.order()[3] == 7);
  CHECK(ranking.pending().size() == 1);
}

TEST_CASE("several objectives: nondomination rank, then hypervolume") {
  detail::TrialRanking ranking(2, 0);
  const Point nowhere;
  const std::vector<std::vector<double>> losses{{0, 1},     {1, 0}, {0.45, 0.45},  {0.46, 0.44},
                                                {0.6, 0.6}, {2, 2}, {infinity, -5}};
  for (std::size_t i = 0; i < losses.size(); ++i)
    ranking.observe({.kind = Observation::Kind::ended,
                     .trial = static_cast<TrialId>(i),
                     .point = nowhere,
                     .steps = 1,
                     .losses = losses[i],
                     .state = TrialState::completed});
  auto best = ranking.best(3);
  REQUIRE(best.size() == 3);
  std::sort(best.begin(), best.end());  // of the twins in the middle one is enough
  CHECK(best[0] == 0);
  CHECK(best[1] == 1);
  CHECK((best[2] == 2 || best[2] == 3));
  const auto five = ranking.best(5);
  CHECK(std::set<std::uint32_t>(five.begin(), five.end()) == std::set<std::uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("tpe finds more than chance does") {
  const auto mixed = hypertune::space(
      dim("kind", choice<std::string>({"a", "b", "c"})), dim("lr", log_uniform(1e-6, 1)), dim("n", integer(1, 20)),
      dim("x", uniform(0, 1)).when("kind", "a"), dim("y", log_int(1, 1000)).when("kind", "b"));
  const auto mixed_loss = [](const Point& p) {
    double loss = 0.1 * std::pow(std::log10(p[1]) + 3, 2) + 0.01 * std::pow(p[2] - 7, 2);
    if (p[0] == 0) loss += 0.2 + std::pow(p[3] - 0.3, 2);
    if (p[0] == 1) loss += 0.1 * std::pow(std::log10(p[4]) - 2, 2);
    return loss + (p[0] == 2 ? 0.3 : 0);
  };
  struct Case {
    SearchSpace space;
    std::function<double(const Point&)> loss;
    int trials;
  };
  for (const auto& [space, loss, trials] :
       {Case{box(6), quadratic, 60}, Case{box(15), quadratic, 60}, Case{mixed, mixed_loss, 60}}) {
    const auto best = [&, &space = space, &loss = loss, n = trials](auto searcher, std::uint64_t seed) {
      double least = infinity;
      for (const auto& p : run(searcher, space, n, seed, {}, [&](const Point& x) { return Finished{.loss = loss(x)}; }))
        least = std::min(least, loss(p));
      return least;
    };
    int wins = 0;
    constexpr int seeds = 15;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) wins += best(Tpe{}, seed) < best(Random{}, seed + 100);
    INFO(space.describe());
    CHECK(wins >= 12);  // by chance: one in 57
  }
}

TEST_CASE("a prior that is right helps at once, a wrong one is overcome") {
  const auto plain = hypertune::space(dim("x", log_uniform(1e-6, 1)), dim("y", uniform(0, 1)), dim("z", uniform(0, 1)));
  const auto believing = [](double x, double y) {
    return hypertune::space(dim("x", log_uniform(1e-6, 1)).prior(x, 0.1), dim("y", uniform(0, 1)).prior(y, 0.1),
                            dim("z", uniform(0, 1)));
  };
  const auto loss = [](const Point& p) {
    return std::pow((std::log10(p[0]) + 2) / 3, 2) + std::pow(p[1] - 0.7, 2) + std::pow(p[2] - 0.2, 2);
  };
  const auto median_best = [&](const SearchSpace& space, int trials) {
    std::vector<double> bests;
    for (std::uint64_t seed = 0; seed < 11; ++seed) {
      double least = infinity;
      for (const auto& p :
           run(Tpe{}, space, trials, seed, {}, [&](const Point& x) { return Finished{.loss = loss(x)}; }))
        least = std::min(least, loss(p));
      bests.push_back(least);
    }
    std::sort(bests.begin(), bests.end());
    return bests[5];
  };
  CHECK(median_best(believing(1e-2, 0.7), 12) < median_best(plain, 12));
  CHECK(median_best(believing(1e-5, 0.1), 100) < 0.02);
  Tpe tpe;
  tpe.prepare(believing(1e-2, 0.7), {.samples = 50});
  const Point first = ask(tpe, 0, 1);
  CHECK(first[0] == Approx(1e-2));
  CHECK(first[1] == Approx(0.7));
}

TEST_CASE("constraints are learnt: most suggestions come to meet them") {
  const auto space = box(3);
  const auto violation = [](const Point& p) { return 1.5 - p[0]; };  // the optimum without it is at 1.3
  int feasible = 0, all = 0;
  double best = infinity;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto points = run(Tpe{}, space, 80, seed, {.constraints = 1}, [&](const Point& p) {
      return Finished{.loss = quadratic(p), .constraints = {violation(p)}};
    });
    for (std::size_t i = 30; i < points.size(); ++i) {
      ++all;
      if (violation(points[i]) > 0) continue;
      ++feasible;
      best = std::min(best, quadratic(points[i]));
    }
  }
  CHECK(feasible > all / 2);
  CHECK(best < 0.3);
}

TEST_CASE("several objectives: the front is spread and close to the true one") {
  const auto space = box(4);
  const auto losses = [](const Point& p) {
    double a = 0, b = 0;
    for (const double x : p) a += (x - 0) * (x - 0), b += (x - 1) * (x - 1);
    return std::vector<double>{a, b};  // the front: all coordinates equal, from 0 to 1
  };
  const auto volume = [&](auto searcher, std::uint64_t seed) {
    std::vector<std::vector<double>> found;
    for (const auto& p : run(searcher, space, 80, seed, {.objectives = 2},
                             [&](const Point& x) { return Finished{.losses = losses(x)}; }))
      found.push_back(losses(p));
    return hypervolume(found, std::vector<double>{5, 5});
  };
  int wins = 0;
  for (std::uint64_t seed = 0; seed < 9; ++seed) wins += volume(Tpe{}, seed) > volume(Random{}, seed + 50);
  CHECK(wins >= 8);
}

TEST_CASE("early losses of stopped trials are used") {
  // Only stopped trials, at different steps: the model goes where those with the most steps are good.
  const auto space = box(2);
  Tpe tpe;
  tpe.prepare(space, {.samples = 200});
  Rng rng(4);
  for (TrialId trial = 0; trial < 60; ++trial) {
    const Point p = space.sample(rng);
    const bool good = quadratic(p) < 4;
    tell(tpe, trial, p, {.loss = good ? quadratic(p) : 0.0001, .steps = good ? 9 : 1, .state = TrialState::stopped});
  }
  int near = 0;
  for (TrialId trial = 60; trial < 80; ++trial) near += quadratic(ask(tpe, trial, 3)) < 6;
  CHECK(near >= 15);
}

TEST_CASE("parallel trials keep apart") {
  const auto space = box(2);
  Tpe tpe;
  tpe.prepare(space, {.samples = 100, .parallelism = 10});
  Rng rng(4);
  TrialId trial = 0;
  for (; trial < 30; ++trial) {
    const Point p = space.sample(rng);
    tell(tpe, trial, p, {.loss = quadratic(p)});
  }
  std::vector<Point> pending;
  double nearest = infinity;
  for (; trial < 40; ++trial) {
    const Point p = ask(tpe, trial, 2);
    for (const auto& q : pending) nearest = std::min(nearest, std::hypot(p[0] - q[0], p[1] - q[1]));
    tpe.observe({.kind = Observation::Kind::started, .trial = trial, .point = p});
    pending.push_back(p);
  }
  CHECK(nearest > 0.01);
}

TEST_CASE("a small space is gone through without repetition") {
  const auto space =
      hypertune::space(dim("a", integer(1, 4)), dim("b", choice<std::string>({"x", "y", "z"})), dim("c", boolean()));
  std::set<Point> seen;
  for (const auto& p : run(Tpe{}, space, 24, 1, {}, [](const Point& x) { return Finished{.loss = x[0] + x[1]}; }))
    seen.insert(p);
  CHECK(seen.size() == 24);
}

TEST_CASE("tpe does not stay at an integer next to the right one") {
  std::vector<Dim<>> dims;
  const auto top = [](std::size_t i) { return static_cast<double>(8U << (i % 4)); };
  for (std::size_t i = 0; i < 8; ++i)
    dims.push_back(dim("n" + std::to_string(i), integer(1, static_cast<std::int64_t>(top(i)))));
  const auto space = Space<>(std::move(dims)).search_space();
  const auto value = [&](const Point& p) {
    double sum = 0, before = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const double z = (p[i] - std::round(top(i) * (0.2 + 0.08 * static_cast<double>(i)))) / top(i);
      sum += z * z * (1 + 3 * static_cast<double>(i % 3)) + 0.5 * z * before;
      before = z;
    }
    return sum;
  };
  std::vector<double> best;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    double least = infinity;
    for (const auto& p : run(Tpe{}, space, 200, seed, {}, [&](const Point& x) { return Finished{.loss = value(x)}; }))
      least = std::min(least, value(p));
    best.push_back(least);
  }
  std::sort(best.begin(), best.end());
  CHECK(best[4] < 0.016);  // one step away in one of the dimensions of 8 values
}

TEST_CASE("nothing throws tpe off") {
  const auto check = [](const SearchSpace& space, const std::function<Finished(const Point&)>& f, int trials = 40) {
    for (const auto& p : run(Tpe{}, space, trials, 1, {}, f)) {
      const auto problem = space.invalid(p);
      INFO(problem.value_or(""));
      REQUIRE_FALSE(problem);
      REQUIRE(space.feasible(p));
    }
  };
  check(box(3), [](const Point&) { return Finished{.loss = 1}; });  // constant
  check(box(3), [](const Point& p) { return Finished{.loss = p[0] > 0 ? infinity : std::nan("")}; });
  check(box(3), [](const Point& p) { return Finished{.loss = p[0] > 0 ? 1e308 : -1e308}; });
  check(box(3), [](const Point& p) {
    return Finished{.loss = p[0], .state = p[1] > 0 ? TrialState::failed : TrialState::completed};
  });
  check(hypertune::space(dim("a", constant(1))), [](const Point&) { return Finished{}; });
  check(hypertune::space(dim("x", uniform(2, 2)), dim("y", uniform(0, 1e-300))),
        [](const Point& p) { return Finished{.loss = p[1]}; });
  check(hypertune::space(dim("x", uniform(0, 1)), dim("y", uniform(0, 1)))
            .constraint("a sliver",
                        [](const Params& p) { return std::fabs(p.get<double>("x") - p.get<double>("y")) < 0.005; }),
        [](const Point& p) { return Finished{.loss = p[0]}; });
  CHECK_THROWS_WITH(AnySearcher(Tpe{.gamma = 0}), ContainsSubstring("gamma is 0"));
  CHECK_THROWS_WITH(AnySearcher(Tpe{.ei_candidates = 0}), ContainsSubstring("ei_candidates is 0"));
  CHECK_THROWS_WITH(AnySearcher(Tpe{.prior_strength = -1}), ContainsSubstring("prior_strength is -1"));
}
