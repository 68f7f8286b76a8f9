// What one suggestion costs, observations included, by how many trials the searcher knows.
#include "support/test.hpp"

#include <hypertune/search/auto.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/tpe.hpp>
#include <hypertune/space/space.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

SearchSpace box(int n) {
  std::vector<Dim<Params>> dims;
  for (int i = 0; i < n; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(-5, 5)));
  return Space<>(dims);
}

double loss(const Point& p) {
  double sum = 0;
  for (const double x : p) sum += x * x;
  return sum;
}

void tell(AnySearcher& searcher, TrialId trial, const Point& point, const std::vector<double>& losses) {
  searcher.observe({.kind = Observation::Kind::started, .trial = trial, .point = point});
  searcher.observe({.kind = Observation::Kind::ended,
                    .trial = trial,
                    .point = point,
                    .steps = 1,
                    .losses = losses,
                    .state = TrialState::completed});
}

/// One searcher that knows `trials` random trials: each measurement is a suggestion and its result.
void measure(const std::string& name, AnySearcher searcher, std::size_t objectives, int trials) {
  const auto space = box(10);
  searcher.prepare(space, {.objectives = objectives, .samples = trials, .seed = 1});
  const auto losses = [&](const Point& p) {
    std::vector<double> result{loss(p)};
    if (objectives > 1) result.push_back(p[0] - p[1]);
    return result;
  };
  Rng rng(1);
  TrialId trial = 0;
  for (; trial < trials; ++trial) {
    const Point p = space.sample(rng);
    tell(searcher, trial, p, losses(p));
  }
  BENCHMARK(name + ", " + std::to_string(trials) + " trials") {
    Rng own = derived_rng(1, {static_cast<std::uint64_t>(trial), 1});
    const Point p = searcher.suggest({.trial = trial, .rng = own}).point;
    tell(searcher, trial++, p, losses(p));
    return p[0];
  };
}

}  // namespace

TEST_CASE("a suggestion in 10 dimensions") {
  for (const int trials : {100, 1'000, 10'000}) measure("tpe", Tpe{}, 1, trials);
  measure("tpe, two objectives", Tpe{}, 2, 10'000);
  for (const int trials : {100, 1'000}) measure("gp", GaussianProcess{}, 1, trials);
  for (const int trials : {100, 1'000}) measure("auto", Auto{}, 1, trials);
  for (const int trials : {1'000, 10'000}) measure("cma_es", CmaEs{}, 1, trials);
}
