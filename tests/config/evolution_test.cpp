#include "support/test.hpp"

#include <hypertune/config/algorithms.hpp>

#include <string>

using namespace hypertune;

namespace {

AnySearcher read(const std::string& text) { return searcher_from_yaml(load_yaml_text(text, "sweep.yaml")); }

}  // namespace

TEST_CASE("searchers that evolve are found by name, with their options") {
  CHECK(read("cma_es").name() == "cma_es");
  CHECK(read("{type: cma_es, population_size: 12, sigma0: 0.2, restart_strategy: ipop, shape: separable}").name() ==
        "cma_es");
  CHECK(read("{type: nsga2, population_size: 20, crossover_probability: 0.8, mutation_probability: 0.1, crossover_eta: "
             "15, mutation_eta: 15}")
            .multi_objective());
  CHECK(read("nsga3").multi_objective());
  CHECK_FALSE(read("cma_es").multi_objective());
  CHECK(read("{type: differential_evolution, population_size: 20, mutation_factor: 0.7, crossover_probability: 0.8}")
            .name() == "differential_evolution");
  CHECK(read("{type: dehb, max_steps: 27, reduction_factor: 3, mutation_factor: 0.5, crossover_probability: 0.5}")
            .name() == "dehb");
}
TEST_CASE("options of searchers that evolve are checked where they stand") {
  CHECK_THROWS_WITH(read("{type: cma_es, restart_strategy: bipo}"), ContainsSubstring("did you mean 'bipop'?"));
  CHECK_THROWS_WITH(read("{type: cma_es, population_size: 2}"),
                    ContainsSubstring("sweep.yaml:1: cma_es: population_size is 2"));
  CHECK_THROWS_WITH(read("{type: cma_es, step: 2}"), ContainsSubstring("unknown key 'step'"));
  CHECK_THROWS_WITH(read("{type: nsga2, crossover_probabilty: 1}"),
                    ContainsSubstring("did you mean 'crossover_probability'?"));
  CHECK_THROWS_WITH(read("{type: dehb, reduction_factor: 1}"), ContainsSubstring("reduction_factor is 1"));
  CHECK_THROWS_WITH(read("{type: differential_evolution, mutation_factor: -1}"),
                    ContainsSubstring("mutation_factor is -1"));
  CHECK_THROWS_WITH(read("{type: nsga3, mutation_probability: 3}"), ContainsSubstring("mutation_probability is 3"));
}
TEST_CASE("a race is found by name") {
  const auto schedule = [](const std::string& text) { return scheduler_from_yaml(load_yaml_text(text, "sweep.yaml")); };
  CHECK(schedule("{type: race, instances: 30, grace_period: 4, alpha: 0.1, test: wilcoxon, reports: value}")
            .max_steps() == 30);
  CHECK(schedule("race").name() == "race");
  CHECK_THROWS_WITH(schedule("{type: race, test: wilcox}"), ContainsSubstring("did you mean 'wilcoxon'?"));
  CHECK_THROWS_WITH(schedule("{type: race, grace_period: 1}"), ContainsSubstring("grace_period is 1"));
}
