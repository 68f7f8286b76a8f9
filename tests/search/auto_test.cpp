#include "minimise.hpp"
#include "support/test.hpp"

#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/auto.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/auto_models.hpp>
#include <hypertune/search/detail/auto_state.hpp>
#include <hypertune/search/detail/ties.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/nsga.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

std::string chosen(const SearchSpace& space, const SearchContext& goal) {
  Auto searcher;
  searcher.prepare(space, goal);
  return searcher.name();
}

SearchSpace numbers(int dimensions) {
  std::vector<Dim<>> dims;
  for (int i = 0; i < dimensions; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(0.0, 1.0)));
  return Space<>(std::move(dims)).search_space();
}

/// Auto, and by themselves the two searchers that it chooses between; all are told the same.
struct AutoAndParts {
  Auto searcher;
  GaussianProcess gp;
  Tpe tpe;
  AutoAndParts(const SearchSpace& space, const SearchContext& goal) {
    searcher.prepare(space, goal);
    gp.prepare(space, goal);
    tpe.prepare(space, goal);
  }
  void tell(const Observation& o) {
    searcher.observe(o);
    gp.observe(o);
    tpe.observe(o);
  }
};

Point suggested(auto& by, TrialId trial) {
  Rng rng = derived_rng(9, {static_cast<std::uint64_t>(trial)});
  return by.suggest({.trial = trial, .rng = rng}).point;
}

}  // namespace

TEST_CASE("Auto chooses by dimensions, types, budget and objectives") {
  const auto mixed = space(dim("kind", choice({"a", "b"})), dim("x", uniform(0.0, 1.0)).when("kind", "a"));
  REQUIRE(chosen(numbers(5), {.samples = 100}) == "auto: gp");
  REQUIRE(chosen(numbers(5), {}) == "auto: gp");
  REQUIRE(chosen(numbers(5), {.samples = 100'000}) == "auto: cma_es");
  REQUIRE(chosen(numbers(200), {.samples = 100}) == "auto: cma_es");
  REQUIRE(chosen(numbers(200), {.objectives = 2, .samples = 100}) == "auto: tpe");
  REQUIRE(chosen(mixed.search_space(), {.samples = 100}) == "auto: gp");
  REQUIRE(chosen(mixed.search_space(), {.samples = 100'000}) == "auto: tpe");
  REQUIRE(chosen(space(dim("x", constant(1.0))).search_space(), {}) == "auto: random");
}

TEST_CASE("Auto gives every other trial to TPE while its model brings nothing new") {
  const SearchSpace space = numbers(3);
  const SearchContext goal{.samples = 100, .seed = 4};
  for (const bool falls : {false, true}) {
    AutoAndParts all(space, goal);
    Rng rng(1);
    for (TrialId trial = 0; trial < 32; ++trial) {
      const Point point = space.sample(rng);
      const double loss[] = {falls ? 100.0 - static_cast<double>(trial) : trial == 0 ? 0.0 : 1 + point[0]};
      if (trial >= 30) {  // no trial was better than the first one
        INFO("trial " << trial << (falls ? ", falling" : ", settled"));
        CHECK(all.gp.stagnant() == !falls);
        const Point own = suggested(all.searcher, trial);
        CHECK((own == suggested(all.gp, trial)) == (falls || trial % 2 == 0));
        CHECK((own == suggested(all.tpe, trial)) == (!falls && trial % 2 == 1));
      }
      all.tell({.kind = Observation::Kind::started, .trial = trial, .point = point});
      all.tell({.kind = Observation::Kind::ended,
                .trial = trial,
                .point = point,
                .steps = 1,
                .losses = loss,
                .state = TrialState::completed});
    }
  }
}

TEST_CASE("Auto gives every other trial to TPE where most trials are cut short, as a scheduler does") {
  const SearchSpace space = numbers(3);
  const SearchContext goal{.samples = 100, .parallelism = 2, .seed = 4};
  for (const bool stops : {false, true}) {
    AutoAndParts all(space, goal);
    Rng rng(1);
    for (TrialId trial = 0; trial < 20; ++trial) {
      const Point point = space.sample(rng);
      if (trial > 12) {
        INFO("trial " << trial << (stops ? ", most were stopped" : ", few were stopped"));
        const Point own = suggested(all.searcher, trial);
        CHECK((own == suggested(all.tpe, trial)) == (stops && trial % 2 == 1));
        CHECK((own == suggested(all.gp, trial)) == (!stops || trial % 2 == 0));
      }
      const bool stopped = stops == (trial % 4 != 0);
      const double loss[] = {100.0 - static_cast<double>(trial)};
      all.tell({.kind = Observation::Kind::started, .trial = trial, .point = point});
      for (int steps = 1; steps <= (stopped ? 3 : 27); ++steps)
        all.tell({.kind = Observation::Kind::report,
                  .trial = trial,
                  .point = point,
                  .steps = steps,
                  .losses = loss,
                  .state = TrialState::running});
      all.tell({.kind = Observation::Kind::ended,
                .trial = trial,
                .point = point,
                .steps = stopped ? 3 : 27,
                .losses = loss,
                .state = stopped ? TrialState::stopped : TrialState::completed});
    }
  }
}

namespace {

/// Two wells in two dimensions: a wide one of depth 0.8, in which most searches end, and a narrow one of depth 1.
double two_wells(const Point& p) {
  const auto square = [](double x) { return x * x; };
  const double wide = square(p[0] - 0.3) + square(p[1] - 0.3), narrow = square(p[0] - 0.8) + square(p[1] - 0.8);
  return 1 - std::max(0.8 * std::exp(-wide / (2 * 0.25 * 0.25)), std::exp(-narrow / (2 * 0.1 * 0.1)));
}

void run_one(Auto& searcher, GaussianProcess& gp, TrialId trial, const Point& point, double loss) {
  const double losses[] = {loss};
  const auto tell = [&](const Observation& o) {
    searcher.observe(o);
    gp.observe(o);
  };
  tell({.kind = Observation::Kind::started, .trial = trial, .point = point});
  tell({.kind = Observation::Kind::ended,
        .trial = trial,
        .point = point,
        .steps = 1,
        .losses = losses,
        .state = TrialState::completed});
}

}  // namespace

TEST_CASE("Auto looks elsewhere once its model has found a minimum, and not where it only makes no progress") {
  const SearchSpace space = hypertune_test::unit_cube(3);
  const SearchContext goal{.samples = 200, .seed = 4};
  for (const bool found : {true, false}) {
    Auto searcher;
    GaussianProcess gp;
    searcher.prepare(space, goal);
    gp.prepare(space, goal);
    Rng rng(1);
    const Point minimum = {0.7, 0.2, 0.4};
    TrialId trial = 0;
    for (; trial < 28; ++trial) run_one(searcher, gp, trial, space.sample(rng), 2 + uniform01(rng));
    for (; trial < 48; ++trial) {  // as good as the first of them, right beside it or far off
      Point point = minimum;
      if (found)
        for (double& x : point) x += 1e-4 * uniform01(rng);
      else if (trial > 28)
        point = space.sample(rng);
      run_one(searcher, gp, trial, point, trial == 28 ? 0 : 1e-6 * uniform01(rng));
    }
    REQUIRE(gp.stagnant());
    REQUIRE(gp.converged() == found);
    // The next sixteen: which of them are not those of the model that knows all, nor of TPE?
    std::vector<std::vector<double>> elsewhere;
    for (; trial < 64; ++trial) {
      Tpe tpe = *searcher.state_->tpe_;
      GaussianProcess same = gp;
      const auto asked = [&](auto& by) {
        Rng own = derived_rng(9, {static_cast<std::uint64_t>(trial)});
        return by.suggest({.trial = trial, .rng = own}).point;
      };
      const Point point = asked(searcher);
      INFO("trial " << trial << (found ? ", found" : ", only settled"));
      const bool other = found && trial % 2 == 0;
      const bool of_tpe = found ? trial % 4 == 1 && !gp.can_polish() : trial % 2 == 1;
      if (other)
        elsewhere.push_back({point.begin(), point.end()});
      else
        REQUIRE(point == (of_tpe ? asked(tpe) : asked(same)));
      run_one(searcher, gp, trial, point, other ? 1 + uniform01(rng) : 0.5);
    }
    if (!found) continue;
    REQUIRE(elsewhere.size() == 8);
    for (std::size_t d = 0; d < 3; ++d) {  // an even design: both halves of each dimension are seen
      const auto low = std::count_if(elsewhere.begin(), elsewhere.end(), [&](const auto& x) { return x[d] < 0.5; });
      CHECK(low >= 2);
      CHECK(low <= 6);
    }
    // One that comes to the same minimum has nothing to look for there, and makes room for the next.
    for (int i = 0; i < 2; ++i) {
      const std::size_t begun = searcher.state_->models_->others_begun();
      Point beside = minimum;
      beside[0] += 0.02;
      REQUIRE(trial % 2 == 0);
      run_one(searcher, gp, trial++, beside, 1e-3);
      run_one(searcher, gp, trial++, space.sample(rng), 1);
      REQUIRE(searcher.state_->models_->others_begun() == begun);
      run_one(searcher, gp, trial++, space.sample(rng), 1);
      REQUIRE(searcher.state_->models_->others_begun() == begun + 1);
      run_one(searcher, gp, trial++, space.sample(rng), 1);
    }
  }
}

TEST_CASE("Auto leaves a second-best basin more often than its model alone", "[simulated]") {
  const SearchSpace space = hypertune_test::unit_cube(2);
  int with_restarts = 0, alone = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    with_restarts += hypertune_test::minimise(Auto{}, space, two_wells, 80, seed).best() < 0.1;
    alone += hypertune_test::minimise(GaussianProcess{}, space, two_wells, 80, seed).best() < 0.1;
  }
  CAPTURE(with_restarts, alone);  // 17 and 12
  CHECK(with_restarts >= 14);
  CHECK(with_restarts >= alone + 3);
}

TEST_CASE("Auto that is told of a run goes on as the one that made it, searches for other minima included") {
  const SearchSpace space = hypertune_test::unit_cube(2);
  const SearchContext goal{.samples = 100, .parallelism = 2, .seed = 3};
  Auto live, told;
  live.prepare(space, goal);
  told.prepare(space, goal);
  const auto suggested = [](Auto& by, TrialId trial) {
    Rng rng = derived_rng(5, {static_cast<std::uint64_t>(trial)});
    return by.suggest({.trial = trial, .rng = rng}).point;
  };
  std::vector<std::pair<TrialId, Point>> running;
  Rng chance(8);
  const auto end_one = [&] {
    const auto at = running.begin() + (uniform01(chance) < 0.5 && running.size() > 1 ? 1 : 0);
    const double losses[] = {two_wells(at->second)};
    for (Auto* searcher : {&live, &told})
      searcher->observe({.kind = Observation::Kind::ended,
                         .trial = at->first,
                         .point = at->second,
                         .steps = 1,
                         .losses = losses,
                         .state = TrialState::completed});
    running.erase(at);
  };
  std::size_t compared = 0, begun = 0;
  for (TrialId trial = 0; trial < 90; ++trial) {
    if (running.size() == 2) end_one();
    const Point point = suggested(live, trial);
    if (trial % 7 == 0 || live.state_->models_->others_begun() != begun) {
      begun = live.state_->models_->others_begun();
      ++compared;
      INFO("trial " << trial);
      REQUIRE(suggested(told, trial) == point);
      REQUIRE(suggested(live, trial) == point);  // to ask changes nothing
    }
    for (Auto* searcher : {&live, &told})
      searcher->observe({.kind = Observation::Kind::started, .trial = trial, .point = point});
    running.emplace_back(trial, point);
  }
  CHECK(begun >= 2);
  CHECK(compared >= 12);
}

namespace {

/// Whether no configuration was tried twice.
bool each_once(const hypertune_test::Run& run) {
  for (std::size_t i = 0; i < run.points.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (detail::same_point(run.points[i], run.points[j])) return false;
  return true;
}
std::vector<std::pair<std::string, AnySearcher>> modelling() {
  return {{"auto", Auto{}}, {"gp", GaussianProcess{}}, {"tpe", Tpe{}}};
}
std::vector<std::pair<std::string, AnySearcher>> evolving() {
  return {{"nsga2", Nsga2{}},
          {"nsga3", Nsga3{.population_size = 6}},
          {"differential_evolution", DifferentialEvolution{.population_size = 4}},
          {"dehb", Dehb{.max_steps = 9}}};
}

}  // namespace

TEST_CASE("a finite space is tried whole, each configuration once, and then the searcher is exhausted") {
  const auto lattice = space(dim("x", integer(1, 4)), dim("y", integer(1, 4)), dim("z", integer(1, 4)));
  // Three times two of the one kind, five of the other, less what the constraint forbids.
  const auto branches =
      space(dim("kind", choice({"a", "b"})), dim("n", integer(1, 3)).when("kind", "a"),
            dim("flag", choice({"on", "off"})).when("kind", "a"), dim("m", ordinal({1, 2, 4, 8, 16})).when("kind", "b"))
          .constraint("m is not 4", [](const Params& p) { return p.find("m") == nullptr || p.get<int>("m") != 4; });
  const auto sum = [](const Point& point) {  // least in a corner, which the model would ask for again
    double total = 0;
    for (const double x : point) total += is_active(x) ? x : 0.5;
    return total;
  };
  auto none_twice = modelling();
  for (auto& other : evolving()) none_twice.push_back(std::move(other));
  const std::vector<std::pair<SearchSpace, std::size_t>> spaces{{lattice.search_space(), 64},
                                                                {branches.search_space(), 10}};
  for (const auto& [finite, size] : spaces)
    for (const auto& [name, searcher] : none_twice)
      for (const int parallel : {1, 5}) {
        INFO(name << ", " << size << " configurations, " << parallel << " at a time");
        const auto n = static_cast<int>(size);
        const auto whole = hypertune_test::minimise(searcher, finite, sum, n, 3, parallel);
        CHECK(whole.points.size() == size);
        CHECK(each_once(whole));
        const auto more = hypertune_test::minimise(searcher, finite, sum, 2 * n, 4, parallel);
        CHECK(more.points.size() == size);
        CHECK(each_once(more));
      }
  // A budget for which numbers alone go to CMA-ES, which would not know.
  CHECK(chosen(lattice.search_space(), {.samples = 100'000}) == "auto: tpe");
}

TEST_CASE("a space of one configuration is tried once, by all but those that draw whatever was tried") {
  const auto point = space(dim("a", constant(1)), dim("b", uniform(2, 2)), dim("c", choice<std::string>({"only"})));
  const auto drawn = space(dim("x", derived([](const Params&, Rng& rng) { return uniform01(rng); }))).search_space();
  auto all = modelling();
  for (auto& other : evolving()) all.push_back(std::move(other));
  all.emplace_back("cma_es", CmaEs{});
  const auto flat = [](const Point&) { return 1.0; };
  for (const auto& [name, searcher] : all) {
    INFO(name);
    CHECK(hypertune_test::minimise(searcher, point.search_space(), flat, 10, 3, 1).points.size() == 1);
    CHECK(hypertune_test::minimise(searcher, SearchSpace(space()), flat, 10, 3, 1).points.size() == 1);
    CHECK(
        hypertune_test::minimise(hypertune::repeat(searcher, 3), point.search_space(), flat, 10, 3, 2).points.size() ==
        3);
    CHECK(hypertune_test::minimise(searcher, drawn, flat, 10, 3, 1).points.size() == 10);  // a new one each time
  }
  CHECK(hypertune_test::minimise(Random{}, point.search_space(), flat, 10, 3, 1).points.size() == 10);
}

TEST_CASE("cma_es may ask for a configuration again, and ends when all of a finite space is tried") {
  const auto lattice = space(dim("x", integer(1, 4)), dim("y", integer(1, 4))).search_space();
  const auto tried = hypertune_test::minimise(CmaEs{}, lattice, [](const Point& p) { return p[0] + p[1]; }, 2000, 3, 1);
  std::set<Point> distinct(tried.points.begin(), tried.points.end());
  CHECK(distinct.size() == 16);
  CHECK(tried.points.size() < 2000);
}

TEST_CASE("a corner that is best is asked for once, and so is what no active parameter tells apart") {
  const auto square = space(dim("x", uniform(0.0, 1.0)), dim("y", uniform(0.0, 1.0)));
  const auto corner = [](const Point& p) { return p[0] + 2 * p[1]; };
  const auto branches = space(dim("kind", choice({"flat", "hill"})), dim("n", integer(1, 3)).when("kind", "flat"),
                              dim("x", uniform(0.0, 1.0)).when("kind", "hill"));
  // The best is in the branch of three.
  const auto flat = [](const Point& p) { return p[0] == 0 ? 0.1 * p[1] : 1 + p[2]; };
  for (const auto& [name, searcher] : modelling())
    for (const std::uint64_t seed : {1, 2}) {
      INFO(name << ", seed " << seed);
      const auto in_corner = hypertune_test::minimise(searcher, square.search_space(), corner, 40, seed);
      CHECK(each_once(in_corner));
      CHECK(in_corner.best() < 0.05);
      const auto in_branch = hypertune_test::minimise(searcher, branches.search_space(), flat, 30, seed);
      CHECK(each_once(in_branch));
      CHECK(in_branch.best() == Approx(0.1));
    }
}

TEST_CASE("the same loss is not bought again by what does not matter in a branch") {
  // w matters in one branch, and in the better one nothing but n does.
  const auto branches = space(dim("kind", choice({"useful", "not"})), dim("n", integer(1, 20)).when("kind", "not"),
                              dim("x", uniform(0.0, 1.0)).when("kind", "useful"), dim("w", uniform(0.0, 1.0)));
  const SearchSpace& s = branches.search_space();
  const auto f = [&](const Point& p) {
    const auto at = [&](const char* name) { return p[*s.index_of(name)]; };
    if (at("kind") == 0) return 0.25 + std::pow(at("x") - 0.3, 2) + 0.1 * std::pow(at("w") - 0.5, 2);
    return 0.2 + 0.05 * std::fabs(at("n") - 15);
  };
  for (const auto& [name, searcher] : modelling())
    for (const std::uint64_t seed : {1, 2, 3}) {
      if (name == "tpe") continue;  // which does not always find it
      INFO(name << ", seed " << seed);
      const auto run = hypertune_test::minimise(searcher, s, f, 50, seed);
      CHECK(run.best() == Approx(0.2));
      CHECK(std::count(run.losses.begin(), run.losses.end(), run.best()) <= 12);
      CHECK(std::count_if(run.points.begin(), run.points.end(), [&](const Point& p) { return p[0] == 0; }) >= 8);
    }
}

TEST_CASE("ties span boxes of what is continuous") {
  const auto made = space(dim("n", integer(1, 9)), dim("x", uniform(0.0, 1.0)), dim("y", uniform(0.0, 1.0)));
  detail::Ties ties(made.search_space());
  const auto tell = [&](const Point& point, double loss, TrialState state = TrialState::completed) {
    ties.observe({.kind = Observation::Kind::ended, .trial = 0, .point = point, .losses = {&loss, 1}, .state = state});
  };
  tell({3, 0.2, 0.5}, 1);
  tell({3, 0.4, 0.5}, 1);
  tell({3, 0.6, 0.5}, 1, TrialState::stopped);
  tell({4, 0.6, 0.5}, 1);
  CHECK_FALSE(ties.any());
  CHECK_FALSE(ties.contains({3, 0.3, 0.5}));
  tell({3, 0.8, 0.5}, 1);
  CHECK(ties.contains({3, 0.3, 0.5}));
  CHECK_FALSE(ties.contains({3, 0.3, 0.6}));
  CHECK_FALSE(ties.contains({3, 0.9, 0.5}));
  CHECK_FALSE(ties.contains({4, 0.3, 0.5}));
}

TEST_CASE("suggestions cost what trials cost, by what was recorded, in runs of many trials") {
  detail::AskBudget budget({.samples = 2000, .parallelism = 4});
  CHECK(budget.affords(1));  // nothing is known yet
  budget.ended(0.4);
  CHECK(budget.affords(0.1));
  CHECK_FALSE(budget.affords(0.11));
  budget.started(0.06);
  CHECK_FALSE(budget.affords(0.05));
  budget.ended(0.4);
  CHECK(budget.affords(0.14));
  budget.ended(0);  // unknown
  CHECK_FALSE(budget.affords(0.15));
  for (int i = 0; i < 1'000'000; ++i) budget.ended(4e-6);
  CHECK(budget.affords(1e-5));
  CHECK_FALSE(
      budget.affords(1e-3));  // of a model that takes a thousand times as long as a trial the time is never earned
  // A quick one may take a little more for each trial that was started.
  detail::AskBudget quick({.samples = 2000});
  quick.ended(1e-6);
  CHECK(quick.affords_quick(1e-4));
  CHECK_FALSE(quick.affords_quick(2e-4));
  quick.started(0);
  CHECK(quick.affords_quick(2e-4));
  quick.started(2e-4);
  CHECK(quick.affords_quick(1e-4));
  CHECK_FALSE(quick.affords_quick(1.1e-4));
}

TEST_CASE("in runs of few trials a suggestion takes at most as long as four trials, and all as long as two each") {
  detail::AskBudget budget({.samples = 500, .parallelism = 4});
  CHECK(budget.affords(1e6));
  budget.ended(0.5);  // the first one, with all that is loaded once
  CHECK(budget.affords(1));
  for (int i = 0; i < 2; ++i) budget.ended(1e-3);
  CHECK(budget.affords(4e-3));
  CHECK_FALSE(budget.affords(4.1e-3));
  CHECK(budget.affords_quick(4.1e-3));
  budget.started(1.001);  // of 1.004 s, twice what the trials took
  CHECK(budget.affords(2e-3));
  CHECK_FALSE(budget.affords(4e-3));
  CHECK(budget.affords_quick(4e-3));
}

namespace {

/// Tells two searchers of trials that take `seconds` each, one of them without asking it, as a replay does. Counts what
/// the suggestions came from.
struct Timed {
  int by_model = 0, by_tpe = 0, by_chance = 0;
  std::vector<Point> points{};

  Timed(const SearchSpace& s, std::int64_t samples, double seconds, int trials = 60) {
    Auto searcher, again;
    searcher.prepare(s, {.samples = samples, .seed = 4});
    again.prepare(s, {.samples = samples, .seed = 4});
    for (TrialId t = 0; t < trials; ++t) {
      const auto means = searcher.state_->means();
      CHECK(means == again.state_->means());
      CHECK(searcher.quick() == again.quick());
      ++(means == detail::AutoState::Means::random ? by_chance
         : means == detail::AutoState::Means::tpe  ? by_tpe
                                                   : by_model);
      Rng rng = derived_rng(9, {static_cast<std::uint64_t>(t)});
      points.push_back(searcher.suggest({.trial = t, .rng = rng}).point);
      double loss = 0;
      for (const double x : points.back()) loss += x;
      for (Auto* one : {&searcher, &again}) {
        one->observe({.kind = Observation::Kind::started, .trial = t, .point = points.back()});
        one->observe({.kind = Observation::Kind::ended,
                      .trial = t,
                      .point = points.back(),
                      .steps = 1,
                      .losses = {&loss, 1},
                      .state = TrialState::completed,
                      .elapsed = seconds});
      }
    }
  }
};

}  // namespace

TEST_CASE("what a suggestion may cost depends on what the trials before it took") {
  const SearchSpace s = numbers(2);
  for (const std::int64_t samples : {500, 1000}) {
    CAPTURE(samples);
    const Timed unknown(s, samples, 0), dear(s, samples, 1), cheap(s, samples, 2e-6);
    CHECK(unknown.by_model == 60);
    CHECK(dear.points == unknown.points);
    CHECK(cheap.by_model <= 6);  // while nothing is known, and of the design that fills the space
    CHECK(cheap.by_chance == 0);
    CHECK(std::set<Point>(cheap.points.begin(), cheap.points.end()).size() == 60);
  }
  const SearchSpace wide = numbers(60);  // where TPE takes longer, too
  CHECK(Timed(wide, 1000, 2e-6).by_chance > 30);
  CHECK(Timed(wide, 500, 2e-6).by_chance == 0);
  CHECK(Timed(wide, 1000, 1, 20).by_chance == 0);
}
