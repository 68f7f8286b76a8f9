#include "support/test.hpp"

#include <hypertune/config/algorithms.hpp>

#include <string>

using namespace hypertune;

namespace {

AnySearcher read(const std::string& text) { return searcher_from_yaml(load_yaml_text(text, "sweep.yaml")); }

}  // namespace

TEST_CASE("searchers that evolve are found by name, with their options") {
  CHECK(read("cma_es").name() == "cma_es");
  CHECK(read("{type: cma_es, population: 12, sigma: 0.2, restarts: ipop, shape: separable}").name() == "cma_es");
  CHECK(read("{type: nsga2, population: 20, crossover: 0.8, mutation: 0.1, crossover_eta: 15, mutation_eta: 15}")
            .multi_objective());
  CHECK(read("nsga3").multi_objective());
  CHECK_FALSE(read("cma_es").multi_objective());
  CHECK(read("{type: differential_evolution, population: 20, weight: 0.7, crossover: 0.8}").name() ==
        "differential_evolution");
  CHECK(read("{type: dehb, max: 27, reduction: 3, weight: 0.5, crossover: 0.5}").name() == "dehb");
}
TEST_CASE("options of searchers that evolve are checked where they stand") {
  CHECK_THROWS_WITH(read("{type: cma_es, restarts: bipo}"), ContainsSubstring("did you mean 'bipop'?"));
  CHECK_THROWS_WITH(read("{type: cma_es, population: 2}"),
                    ContainsSubstring("sweep.yaml:1: cma_es: a population of 2"));
  CHECK_THROWS_WITH(read("{type: cma_es, step: 2}"), ContainsSubstring("unknown key 'step'"));
  CHECK_THROWS_WITH(read("{type: nsga2, crosover: 1}"), ContainsSubstring("did you mean 'crossover'?"));
  CHECK_THROWS_WITH(read("{type: dehb, reduction: 1}"), ContainsSubstring("reduction is 1"));
  CHECK_THROWS_WITH(read("{type: differential_evolution, weight: -1}"), ContainsSubstring("weight is -1"));
  CHECK_THROWS_WITH(read("{type: nsga3, mutation: 3}"), ContainsSubstring("mutation is 3"));
}
TEST_CASE("a race is found by name") {
  const auto schedule = [](const std::string& text) { return scheduler_from_yaml(load_yaml_text(text, "sweep.yaml")); };
  CHECK(schedule("{type: race, instances: 30, grace: 4, alpha: 0.1, test: wilcoxon, reports: value}").max_steps() ==
        30);
  CHECK(schedule("race").name() == "race");
  CHECK_THROWS_WITH(schedule("{type: race, test: wilcox}"), ContainsSubstring("did you mean 'wilcoxon'?"));
  CHECK_THROWS_WITH(schedule("{type: race, grace: 1}"), ContainsSubstring("grace is 1"));
}
