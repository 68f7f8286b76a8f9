#include "support/test.hpp"

#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/detail/grid_combinations.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/sobol.hpp>
#include <hypertune/space/space.hpp>

#include <map>
#include <set>

using namespace hypertune;

namespace {

/// Asks for the next trial and, if there is a point, starts it.
std::optional<Point> next(AnySearcher& searcher, TrialId trial) {
  Rng rng = derived_rng(1, {static_cast<std::uint64_t>(trial)});
  auto suggestion = searcher.suggest({.trial = trial, .rng = rng});
  if (suggestion.kind != Suggestion::Kind::point) return std::nullopt;
  searcher.observe({.kind = Observation::Kind::started, .trial = trial, .point = suggestion.point});
  return suggestion.point;
}
void end(AnySearcher& searcher, TrialId trial, const Point& point, double loss, TrialState state) {
  searcher.observe({.kind = Observation::Kind::ended,
                    .trial = trial,
                    .point = point,
                    .steps = 1,
                    .losses = {&loss, 1},
                    .state = state});
}
std::vector<std::string> all(AnySearcher searcher, const SearchSpace& space) {
  searcher.prepare(space, {});
  std::vector<std::string> texts;
  for (TrialId t = 0; t < 100'000; ++t) {
    const auto point = next(searcher, t);
    if (!point) break;
    texts.push_back(fmt::format("{}", space.params(*point)));
  }
  return texts;
}

/// Notes what an adaptor tells the searcher inside.
struct Spy {
  std::shared_ptr<std::vector<std::string>> log = std::make_shared<std::vector<std::string>>();
  std::optional<SearchSpace> space{};
  void prepare(const SearchSpace& s, const SearchContext& goal) {
    space = s;
    log->push_back(fmt::format("samples {}", goal.samples));
  }
  Suggestion suggest(const Ask& ask) { return space->sample(ask.rng); }
  void observe(const Observation& o) {
    log->push_back(o.kind == Observation::Kind::started
                       ? fmt::format("started {}", o.trial)
                       : fmt::format("{} {} {} {}", to_string(o.state), o.trial, o.steps, o.loss()));
  }
};

}  // namespace

TEST_CASE("grid tries everything once, without the inactive and the infeasible") {
  CHECK(all(Grid{.resolution = 3}, space(dim("x", uniform(0, 1)), dim("n", integer(1, 2)))) ==
        std::vector<std::string>{"x=0.0 n=1", "x=0.0 n=2", "x=0.5 n=1", "x=0.5 n=2", "x=1.0 n=1", "x=1.0 n=2"});
  CHECK(all(Grid{.resolution = 2}, space(dim("lr", log_uniform(1e-4, 1e-1)))) ==
        std::vector<std::string>{"lr=0.0001", "lr=0.1"});
  CHECK(all(Grid{.resolution = 2},
            space(dim("o", choice<std::string>({"sgd", "adam"})), dim("m", uniform(0, 1)).when("o", "sgd"))) ==
        std::vector<std::string>{"o=sgd m=0.0", "o=sgd m=1.0", "o=adam"});
  CHECK(all(Grid{}, space(dim("a", integer(1, 3)), dim("b", integer(1, 3))).constraint("a < b", [](const Params& p) {
          return p.get<int>("a") < p.get<int>("b");
        })) == std::vector<std::string>{"a=1 b=2", "a=1 b=3", "a=2 b=3"});
  CHECK(all(Grid{.resolution = 5}, space(dim("n", log_int(1, 1000)))).size() == 5);
  CHECK(all(Grid{}, space(dim("g", grid({5, 6, 7})), dim("x", uniform(0, 1)))).size() == 30);
  CHECK(all(Grid{.resolution = 1}, space(dim("x", uniform(0, 1)))) == std::vector<std::string>{"x=0.5"});
}

TEST_CASE("grid is not led astray by trials that are not its own") {
  const auto s = space(dim("a", integer(1, 4)));
  AnySearcher grid = Grid{};
  grid.prepare(s, {});
  const Point foreign{3};
  grid.observe({.kind = Observation::Kind::started, .trial = 0, .point = foreign});
  std::set<double> seen;
  for (TrialId t = 1; t <= 4; ++t) seen.insert(next(grid, t).value().front());
  CHECK(seen == std::set<double>{1, 2, 3, 4});
  CHECK_FALSE(next(grid, 5));
}

TEST_CASE("grid refuses what makes no sense") {
  CHECK_THROWS_WITH(AnySearcher(Grid{.resolution = 0}), ContainsSubstring("resolution is 0"));
}

TEST_CASE("sobol puts one point in each slice of each dimension") {
  std::vector<Dim<Params>> dims;
  for (int i = 0; i < 40; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(0, 1)));
  const Space<> s(dims);
  for (const bool scramble : {true, false})
    for (const std::uint64_t seed : {0, 1, 2}) {
      AnySearcher sobol = Sobol{.scramble = scramble};
      sobol.prepare(s, {.seed = seed});
      std::vector<std::set<int>> slices(40);
      for (TrialId t = 0; t < 256; ++t) {
        const auto point = next(sobol, scramble ? t : t == 0 ? 255 : t - 1).value();
        for (std::size_t d = 0; d < 40; ++d) slices[d].insert(static_cast<int>(point[d] * 256));
      }
      // Without scrambling the origin is left out: of 256 points one slice is hit twice and the first one never.
      for (const auto& hit : slices) CHECK(hit.size() >= (scramble ? 256U : 255U));
    }
}

TEST_CASE("a trial's sobol point depends on the seed and its number alone") {
  const auto s = space(dim("a", uniform(0, 1)), dim("b", uniform(0, 1))).constraint("a < b", [](const Params& p) {
    return p.get<double>("a") < p.get<double>("b");
  });
  AnySearcher one = Sobol{};
  one.prepare(s, {.seed = 5});
  std::map<TrialId, Point> points;
  for (TrialId t = 0; t < 100; ++t) points[t] = next(one, t).value();
  AnySearcher other = Sobol{};
  other.prepare(s, {.seed = 5});
  for (const TrialId t : {99, 3, 50}) CHECK(next(other, t).value() == points[t]);
  std::set<Point> distinct;
  for (const auto& [t, p] : points) distinct.insert(p);
  CHECK(distinct.size() == 100);
  AnySearcher seeded = Sobol{};
  seeded.prepare(s, {.seed = 6});
  CHECK(next(seeded, 0).value() != points[0]);
}

TEST_CASE("sobol manages more dimensions than there are direction numbers") {
  std::vector<Dim<Params>> dims;
  for (int i = 0; i < 4000; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(0, 1)));
  const Space<> s(dims);
  AnySearcher sobol = Sobol{};
  sobol.prepare(s, {});
  const auto first = next(sobol, 0).value();
  const auto second = next(sobol, 1).value();
  CHECK(first[3999] != second[3999]);
  CHECK(first[3999] != first[3998]);
}

TEST_CASE("repeat shows the searcher inside one averaged trial for each configuration") {
  Spy spy;
  AnySearcher searcher = repeat(spy, 3);
  searcher.prepare(space(dim("x", uniform(0, 1))), {.samples = 10});
  std::vector<Point> points;
  for (TrialId t = 0; t < 9; ++t) points.push_back(next(searcher, t).value());
  CHECK((points[0] == points[1] && points[1] == points[2] && points[2] != points[3] && points[3] == points[5]));
  end(searcher, 0, points[0], 1.0, TrialState::completed);
  end(searcher, 3, points[3], 5.0, TrialState::failed);
  end(searcher, 2, points[2], 2.0, TrialState::stopped);
  end(searcher, 4, points[4], 5.0, TrialState::stopped);
  end(searcher, 1, points[1], 6.0, TrialState::completed);
  end(searcher, 5, points[5], 7.0, TrialState::stopped);
  end(searcher, 6, points[6], 1.0, TrialState::failed);
  end(searcher, 7, points[7], 1.0, TrialState::failed);
  end(searcher, 8, points[8], 1.0, TrialState::failed);
  CHECK(*spy.log == std::vector<std::string>{"samples 4", "started 0", "started 1", "started 2", "completed 0 1 3",
                                             "stopped 1 1 6", "failed 2 1 inf"});
  AnySearcher wrong = repeat(Random{}, 0);
  CHECK_THROWS_WITH(wrong.prepare(space(dim("x", uniform(0, 1))), {}), ContainsSubstring("at least once"));
}

TEST_CASE("repeats of a space with a grid keep their combination") {
  const auto s = space(dim("g", grid({1, 2})), dim("x", uniform(0, 1)));
  AnySearcher searcher = repeat(Random{}, 2);
  CHECK(searcher.covers_grid());
  searcher.prepare(s, {});
  std::vector<std::string> combinations;
  for (TrialId t = 0; t < 8; ++t) combinations.push_back(s.search_space().text(0, next(searcher, t).value()[0]));
  CHECK(combinations == std::vector<std::string>{"1", "1", "2", "2", "1", "1", "2", "2"});
}

TEST_CASE("limit waits while too many have no result") {
  AnySearcher searcher = limit(Random{}, 2);
  searcher.prepare(space(dim("x", uniform(0, 1))), {});
  const auto point = next(searcher, 0).value();
  CHECK(next(searcher, 1));
  CHECK_FALSE(next(searcher, 2));
  end(searcher, 0, point, 1, TrialState::failed);
  CHECK(next(searcher, 2));
  AnySearcher none = limit(Random{}, 0);
  CHECK_THROWS_AS(none.prepare(space(dim("x", uniform(0, 1))), {}), Error);
}

TEST_CASE("configurations to start with come first, in order") {
  const auto s = space(dim("x", uniform(0, 1)), dim("n", integer(1, 3))).constraint("n is odd", [](const Params& p) {
    return p.get<int>("n") != 2;
  });
  AnySearcher searcher =
      start_with(Random{}, {Params{{"x", 0.25}, {"n", std::int64_t{3}}}, Params{{"x", 0.5}, {"n", std::int64_t{1}}}});
  searcher.prepare(s, {});
  CHECK(next(searcher, 0).value() == Point{0.25, 3});
  CHECK(next(searcher, 1).value() == Point{0.5, 1});
  CHECK(next(searcher, 2).value() != Point{0.5, 1});
  AnySearcher outside = start_with(Random{}, {Params{{"x", 2.0}, {"n", std::int64_t{3}}}});
  CHECK_THROWS_WITH(outside.prepare(s, {}), ContainsSubstring("'x'"));
  AnySearcher infeasible = start_with(Random{}, {Params{{"x", 0.5}, {"n", std::int64_t{2}}}});
  CHECK_THROWS_WITH(infeasible.prepare(s, {}), ContainsSubstring("n is odd"));
}

TEST_CASE("a mixed grid tries each combination as often, with new draws") {
  const auto s = space(dim("a", grid({1, 2})), dim("x", uniform(0, 1)), dim("b", grid<std::string>({"p", "q", "r"})));
  AnySearcher searcher = mixed_grid(Random{});
  searcher.prepare(s, {});
  std::map<std::string, int> combinations;
  std::set<double> draws;
  for (TrialId t = 0; t < 24; ++t) {
    const auto params = s.search_space().params(next(searcher, t).value());
    ++combinations[fmt::format("{} {}", params.get<int>("a"), params.get<std::string>("b"))];
    draws.insert(params.get<double>("x"));
  }
  CHECK(combinations.size() == 6);
  for (const auto& [name, count] : combinations) CHECK(count == 4);
  CHECK(draws.size() == 24);
}

TEST_CASE("a mixed grid passes over combinations that can never be") {
  const auto s = space(dim("a", grid({1, 2, 3})), dim("x", uniform(0, 1))).constraint("rule", [](const Params& p) {
    return p.get<int>("a") == 1 || (p.get<int>("a") == 3 && p.get<double>("x") > 0.9);
  });
  AnySearcher searcher = mixed_grid(Sobol{});
  searcher.prepare(s, {});
  std::map<int, int> seen;
  for (TrialId t = 0; t < 30; ++t) {
    const auto point = next(searcher, t).value();
    REQUIRE(s.search_space().feasible(point));
    ++seen[s.search_space().params(point).get<int>("a")];
  }
  CHECK(seen == std::map<int, int>{{1, 15}, {3, 15}});
}

TEST_CASE("a grid's combinations are those that can be told apart and be met") {
  const auto sizes = [](const auto& s) {
    const GridCombinations combinations(s);
    std::set<Point> points;
    for (std::uint64_t i = 0; i < combinations.size(); ++i) {
      const auto point = GridCombinations::example(s, combinations[i]);
      REQUIRE(point);
      CHECK(s.search_space().feasible(*point));
      Point grid_part;
      for (const std::size_t d : s.search_space().model().grid) grid_part.push_back((*point)[d]);
      for (double& x : grid_part) x = is_active(x) ? x : -1;
      points.insert(grid_part);
    }
    CHECK(points.size() == combinations.size());
    return combinations.size();
  };
  const auto ascending = [](const Params& p) { return p.get<int>("a") < p.get<int>("b"); };
  const auto a = dim("a", grid({1, 2, 3})), b = dim("b", grid({1, 2, 3}));
  CHECK(sizes(space(a, b)) == 9);
  CHECK(sizes(space(a, b).constraint("a < b", ascending)) == 3);
  CHECK(sizes(space(a, b, dim("x", uniform(0, 1))).constraint("a < b", ascending)) == 3);
  CHECK(sizes(space(a, dim("b", grid({1, 2, 3})).when("a", 2))) == 5);
  CHECK(sizes(space(a, dim("c", constant(7)), dim("b", grid({1, 2, 3})).when("a", 2).when("c", 7))) == 5);
  // Whether b is there is drawn: every combination may come about.
  CHECK(GridCombinations(space(a, dim("o", choice({1, 2})), dim("b", grid({1, 2, 3})).when("o", 2))).size() == 9);
  CHECK(sizes(space(a, b).constraint("never", [](const Params&) { return false; })) == 0);
}
