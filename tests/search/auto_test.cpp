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
