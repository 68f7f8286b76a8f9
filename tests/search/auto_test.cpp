#include "support/test.hpp"

#include <hypertune/search/auto.hpp>
#include <hypertune/space/space.hpp>

#include <string>
#include <vector>

using namespace hypertune;

namespace {

std::string chosen(const SearchSpace& space, const SearchGoal& goal) {
  Auto searcher;
  searcher.prepare(space, goal);
  return searcher.name();
}

SearchSpace numbers(int dimensions) {
  std::vector<Dim<>> dims;
  for (int i = 0; i < dimensions; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(0.0, 1.0)));
  return Space<>(std::move(dims)).search_space();
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
  const SearchGoal goal{.samples = 100, .seed = 4};
  for (const bool falls : {false, true}) {
    Auto searcher;
    GaussianProcess gp;
    Tpe tpe;
    searcher.prepare(space, goal);
    gp.prepare(space, goal);
    tpe.prepare(space, goal);
    const auto tell = [&](const Observation& o) {
      searcher.observe(o);
      gp.observe(o);
      tpe.observe(o);
    };
    const auto suggested = [](auto& by, TrialId trial) {
      Rng rng = derived_rng(9, {static_cast<std::uint64_t>(trial)});
      return by.suggest({.trial = trial, .rng = rng}).point;
    };
    Rng rng(1);
    for (TrialId trial = 0; trial < 32; ++trial) {
      const Point point = space.sample(rng);
      const double loss[] = {falls ? 100.0 - static_cast<double>(trial) : trial == 0 ? 0.0 : 1 + point[0]};
      if (trial >= 30) {  // no trial was better than the first one
        INFO("trial " << trial << (falls ? ", falling" : ", settled"));
        CHECK(gp.settled() == !falls);
        const Point own = suggested(searcher, trial);
        CHECK((own == suggested(gp, trial)) == (falls || trial % 2 == 0));
        CHECK((own == suggested(tpe, trial)) == (!falls && trial % 2 == 1));
      }
      tell({.kind = Observation::Kind::started, .trial = trial, .point = point});
      tell({.kind = Observation::Kind::ended,
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
  const SearchGoal goal{.samples = 100, .parallelism = 2, .seed = 4};
  for (const bool stops : {false, true}) {
    Auto searcher;
    GaussianProcess gp;
    Tpe tpe;
    searcher.prepare(space, goal);
    gp.prepare(space, goal);
    tpe.prepare(space, goal);
    const auto tell = [&](const Observation& o) {
      searcher.observe(o);
      gp.observe(o);
      tpe.observe(o);
    };
    const auto suggested = [](auto& by, TrialId trial) {
      Rng rng = derived_rng(9, {static_cast<std::uint64_t>(trial)});
      return by.suggest({.trial = trial, .rng = rng}).point;
    };
    Rng rng(1);
    for (TrialId trial = 0; trial < 20; ++trial) {
      const Point point = space.sample(rng);
      if (trial > 12) {
        INFO("trial " << trial << (stops ? ", most were stopped" : ", few were stopped"));
        const Point own = suggested(searcher, trial);
        CHECK((own == suggested(tpe, trial)) == (stops && trial % 2 == 1));
        CHECK((own == suggested(gp, trial)) == (!stops || trial % 2 == 0));
      }
      const bool stopped = stops == (trial % 4 != 0);
      const double loss[] = {100.0 - static_cast<double>(trial)};
      tell({.kind = Observation::Kind::started, .trial = trial, .point = point});
      for (int steps = 1; steps <= (stopped ? 3 : 27); ++steps)
        tell({.kind = Observation::Kind::report,
              .trial = trial,
              .point = point,
              .steps = steps,
              .losses = loss,
              .state = TrialState::running});
      tell({.kind = Observation::Kind::ended,
            .trial = trial,
            .point = point,
            .steps = stopped ? 3 : 27,
            .losses = loss,
            .state = stopped ? TrialState::stopped : TrialState::completed});
    }
  }
}
