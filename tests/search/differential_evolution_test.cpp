#include "minimise.hpp"
#include "support/test.hpp"

#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/search/detail/differential_state.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/random.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace hypertune;
using namespace hypertune_test;

namespace {

double sphere(const Point& p) {
  double sum = 0;
  for (const double x : p) sum += (x - 0.3) * (x - 0.3);
  return sum;
}

/// HyperBand over a searcher in one thread: the loss falls from 1 towards the configuration's own with the steps.
/// Returns the best loss among trials with all steps, and the steps spent.
std::pair<double, int> hyperband_run(SearchAndSchedule both, const SearchSpace& s, int trials, std::uint64_t seed) {
  both.search.prepare(s, {.samples = trials, .seed = seed});
  struct Trial {
    Point point;
    int steps = 0;
    double loss = worst_loss;
  };
  std::map<TrialId, Trial> all;
  std::set<TrialId> paused;
  double best = worst_loss;
  int spent = 0;
  const auto end = [&](TrialId t, TrialState state) {
    both.schedule.on_end(t, state);
    tell_ended(both.search, t, all[t].point, {all[t].loss}, state, all[t].steps);
  };
  while (true) {
    const Choice choice = both.schedule.choose_next(
        {.running = 0, .paused = paused.size(), .more_trials = static_cast<int>(all.size()) < trials});
    TrialId t = choice.trial;
    if (choice.kind == Choice::Kind::stop) {
      paused.erase(t);
      end(t, TrialState::stopped);
      continue;
    }
    if (choice.kind == Choice::Kind::resume) {
      paused.erase(t);
      both.schedule.on_resume(t);
    } else if (choice.kind == Choice::Kind::start_new && static_cast<int>(all.size()) < trials) {
      t = static_cast<TrialId>(all.size());
      Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(t), 3});
      all[t].point = both.search.suggest({.trial = t, .rng = rng}).point;
      both.schedule.on_create(t);
      tell_started(both.search, t, all[t].point);
    } else {
      break;
    }
    Trial& trial = all[t];
    for (auto decision = Decision::proceed; decision == Decision::proceed;) {
      ++spent;
      ++trial.steps;
      trial.loss = sphere(trial.point) + 1.0 / trial.steps;
      decision = both.schedule.on_report({.trial = t, .steps = trial.steps, .losses = {&trial.loss, 1}});
      both.search.observe({.kind = Observation::Kind::report,
                           .trial = t,
                           .point = trial.point,
                           .steps = trial.steps,
                           .losses = {&trial.loss, 1}});
      if (decision == Decision::pause) paused.insert(t);
      if (decision == Decision::complete) {
        best = std::min(best, sphere(trial.point));
        end(t, TrialState::completed);
      }
    }
  }
  return {best, spent};
}

}  // namespace

TEST_CASE("a child is the mutant's, gene by gene, and stays in bounds") {
  const detail::Genes genes(unit_cube(3));
  std::vector<detail::Individual> all(4);
  Rng rng(2);
  for (auto& one : all)
    for (int g = 0; g < 3; ++g) one.genome.push_back(0.4 + 0.2 * uniform01(rng));
  std::vector<const detail::Individual*> parents;
  for (const auto& one : all) parents.push_back(&one);
  std::vector<double> child = genes.blank();
  int own = 0;
  for (int i = 0; i < 2000; ++i) {
    detail::differential_child(genes, parents, all[0], 0.5, 0.5, rng, child);
    int kept = 0;
    for (std::size_t g = 0; g < 3; ++g) {
      REQUIRE((child[g] >= 0 && child[g] <= 1));
      if (child[g] == all[0].genome[g]) {
        ++kept;
        continue;
      }
      bool explained = false;  // r1 + 0.5 (r2 - r3) of the other three
      for (int a = 1; a < 4; ++a)
        for (int b = 1; b < 4; ++b)
          for (int c = 1; c < 4; ++c)
            if (a != b && b != c && a != c) {
              const auto at = [&](int k) { return all[static_cast<std::size_t>(k)].genome[g]; };
              explained = explained || child[g] == at(a) + 0.5 * (at(b) - at(c));
            }
      REQUIRE(explained);
    }
    REQUIRE(kept < 3);  // one gene at least is the mutant's
    own += kept;
  }
  CHECK(own / 2000.0 == Approx(1).margin(0.1));  // half of the two that are not forced
}
TEST_CASE("differential evolution converges") {
  const auto make = [] { return DifferentialEvolution{.population_size = 15, .mutation_factor = 0.6}; };
  // SciPy's, with the same settings: 1.3e-4 in the median of 9 seeds, from 1e-5 to 2e-3.
  CHECK(median_best(make, unit_cube(5), sphere, 600) < 2e-3);
  CHECK(median_best(make, unit_cube(5), sphere, 600, 9, 8) < 1e-2);
  const double chance = median_best([] { return Random{}; }, unit_cube(5), sphere, 200);
  CHECK(median_best([] { return DifferentialEvolution{}; }, unit_cube(5), sphere, 200) < chance / 3);
}
TEST_CASE("differential evolution finds categories and branches") {
  const SearchSpace s = Space<>(space(dim("o", choice<std::string>({"a", "b", "c", "d"})), dim("n", integer(0, 9)),
                                      dim("x", uniform(0, 1)).when("o", "c")));
  const auto f = [](const Point& p) {
    return (p[0] == 2 ? (p[2] - 0.6) * (p[2] - 0.6) : 0.5) + std::fabs(p[1] - 7) / 9;
  };
  CHECK(median_best([] { return DifferentialEvolution{}; }, s, f, 200) < 0.02);
}
TEST_CASE("a member gives way only to what is as good, and failures challenge nobody") {
  AnySearcher searcher = DifferentialEvolution{.population_size = 8};
  const SearchSpace s = unit_cube(2);
  searcher.prepare(s, {.samples = 400, .seed = 6});
  double best = worst_loss;
  for (TrialId t = 0; t < 400; ++t) {
    Rng rng = derived_rng(6, {static_cast<std::uint64_t>(t)});
    const Point p = searcher.suggest({.trial = t, .rng = rng}).point;
    tell_started(searcher, t, p);
    if (t % 3 == 0) {
      tell_ended(searcher, t, p, {-100}, TrialState::failed);
      continue;
    }
    best = std::min(best, sphere(p));
    tell_ended(searcher, t, p, {sphere(p)});
  }
  CHECK(best < 1e-3);
}
TEST_CASE("DEHB and BOHB reach with HyperBand what random search does not") {
  std::vector<double> chance, evolved, modelled;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const SearchSpace s = unit_cube(4);
    const SearchAndSchedule random{Random{}, HyperBand{.max_steps = 27}};
    const auto plain = hyperband_run(random, s, 200, seed), de = hyperband_run(dehb(27), s, 200, seed);
    CHECK(de.second < 1.2 * plain.second);  // the same brackets
    chance.push_back(plain.first);
    evolved.push_back(de.first);
    modelled.push_back(hyperband_run(bohb(27), s, 200, seed).first);
  }
  for (auto* all : {&chance, &evolved, &modelled}) std::sort(all->begin(), all->end());
  INFO("random " << chance[2] << ", DEHB " << evolved[2] << ", BOHB " << modelled[2]);
  CHECK(evolved[2] < chance[2] / 2);
  CHECK(modelled[2] < chance[2] / 2);
}
TEST_CASE("options of differential evolution and DEHB are checked") {
  CHECK_THROWS_WITH(AnySearcher(DifferentialEvolution{.population_size = 3}),
                    ContainsSubstring("population_size is 3"));
  CHECK_THROWS_WITH(AnySearcher(DifferentialEvolution{.mutation_factor = 0}),
                    ContainsSubstring("mutation_factor is 0"));
  CHECK_THROWS_WITH(AnySearcher(Dehb{.crossover_probability = 1.5}),
                    ContainsSubstring("dehb: crossover_probability is 1.5"));
  CHECK_THROWS_WITH(AnySearcher(Dehb{.max_steps = 0}), ContainsSubstring("max_steps is 0"));
}
