#include "support/searcher_conformance.hpp"

#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/auto.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/nsga.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/sobol.hpp>
#include <hypertune/search/tpe.hpp>

using namespace hypertune;
using hypertune_test::check_searcher;

TEST_CASE("random keeps the laws of a searcher") {
  check_searcher([] { return Random{}; });
  check_searcher([] { return Random{}; }, {.objectives = 2});
}
TEST_CASE("grid keeps the laws of a searcher") {
  check_searcher([] { return Grid{.resolution = 3}; }, {.distinct = true, .trials = 200});
  check_searcher([] { return Grid{}; });
}
TEST_CASE("sobol keeps the laws of a searcher") {
  check_searcher([] { return Sobol{}; });
  check_searcher([] { return Sobol{.scramble = false}; });
}
TEST_CASE("tpe keeps the laws of a searcher") {
  check_searcher([] { return Auto{}; });
  check_searcher([] { return Tpe{}; });
  check_searcher([] { return Tpe{.startup_trials = 3}; }, {.objectives = 2});
  check_searcher([] { return repeat(mixed_grid(Tpe{.startup_trials = 4}), 2); });
}
TEST_CASE("cma_es keeps the laws of a searcher") {
  check_searcher([] { return CmaEs{}; });
  check_searcher(
      [] { return CmaEs{.population_size = 4, .restart_strategy = CmaRestarts::ipop, .shape = CmaShape::full}; },
      {.trials = 200, .thousand_dimensions = false});
  check_searcher([] { return CmaEs{.sigma0 = 1, .shape = CmaShape::separable}; });
}
TEST_CASE("gp keeps the laws of a searcher") {
  check_searcher([] { return GaussianProcess{}; }, {.trials = 40});
  check_searcher([] { return GaussianProcess{.startup_trials = 2, .max_observations = 20}; },
                 {.trials = 50, .thousand_dimensions = false});
  check_searcher([] { return GaussianProcess{}; }, {.trials = 25, .thousand_dimensions = false, .objectives = 2});
}
TEST_CASE("nsga2 and nsga3 keep the laws of a searcher") {
  check_searcher([] { return Nsga2{}; });
  check_searcher([] { return Nsga2{.population_size = 4}; }, {.objectives = 2});
  check_searcher([] { return Nsga3{}; });
  check_searcher([] { return Nsga3{.population_size = 6}; }, {.objectives = 3});
}
TEST_CASE("differential evolution keeps the laws of a searcher") {
  check_searcher([] { return DifferentialEvolution{}; });
  check_searcher(
      [] { return DifferentialEvolution{.population_size = 4, .mutation_factor = 2, .crossover_probability = 0}; });
}
TEST_CASE("dehb keeps the laws of a searcher") {
  check_searcher([] { return Dehb{}; });
  check_searcher([] { return Dehb{.max_steps = 9, .reduction_factor = 2}; });
}
TEST_CASE("the adaptors keep the laws of a searcher") {
  check_searcher([] { return repeat(Random{}, 3); });
  check_searcher([] { return repeat(Grid{.resolution = 2}, 2); });
  check_searcher([] { return limit(Random{}, 2); });
  check_searcher([] { return mixed_grid(Sobol{}); });
  check_searcher([] { return start_with(Random{}, {}); });
  check_searcher([] { return limit(repeat(mixed_grid(limit(Random{}, 5)), 2), 3); });
}

namespace {

/// What a user would write.
struct AlwaysTheMiddle {
  std::optional<SearchSpace> space;
  void prepare(const SearchSpace& s, const SearchContext&) { space = s; }
  Suggestion suggest(const Ask& ask) {
    const Point point = space->from_unit(std::vector(space->size(), 0.5), ask.rng);
    return space->feasible(point) ? point : space->sample(ask.rng);
  }
  void observe(const Observation&) {}
};

}  // namespace

TEST_CASE("a user's own searcher can be put through the same laws") {
  check_searcher([] { return AlwaysTheMiddle{}; });
}
