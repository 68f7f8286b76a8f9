// Schedulers that pause trials, and grids mixed with sampled dimensions, in real experiments over threads.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/grid.hpp>

#include <map>

namespace ht = hypertune;

namespace {

struct Config {
  double rate = 0.1;
  int kind = 0;
};

ht::Training descend(Config config, ht::Context& context) {
  double x = 1;
  for (int step = context.next_step(); step < 1000; ++step) {
    x -= config.rate * 2 * x;
    co_yield ht::report("distance", x * x);
  }
}

ht::Results run(const ht::Space<Config>& space, const std::string& name, ht::AnyScheduler schedule,
                std::int64_t samples, ht::AnySearcher search = ht::Random{}) {
  const TemporaryDirectory directory;
  return ht::tune(space, descend,
                  {.name = name,
                   .metric = "distance",
                   .samples = samples,
                   .search = std::move(search),
                   .schedule = std::move(schedule),
                   .concurrency = 4,
                   .seed = 1,
                   .output = directory.path() / name,
                   .display = ht::Display::quiet,
                   .handle_signals = false});
}

const ht::Space<Config> rates = ht::space<Config>(ht::dim("rate", &Config::rate, ht::log_uniform(1e-3, 2.0)));

}  // namespace

TEST_CASE("a promoted trial is resumed only once it has left its slot") {
  const auto asha = run(rates, "promotion", ht::Asha{.max_steps = 27, .promotion = true}, 100);
  CHECK(asha.size() == 100);
  CHECK(asha.best().steps > 9);
}

TEST_CASE("a round of hyperband ends with its plan fulfilled") {
  const auto results = run(rates, "hyperband", ht::HyperBand{.max_steps = 9}, 17);  // 9 + 5 + 3
  std::map<int, int> steps;
  for (const auto& trial : results.trials()) ++steps[trial.steps];
  CHECK(steps == std::map<int, int>{{1, 6}, {3, 2 + 4}, {9, 1 + 1 + 3}});
}

TEST_CASE("grid dimensions beside sampled ones: samples times the grid") {
  const auto mixed = ht::space<Config>(ht::dim("rate", &Config::rate, ht::log_uniform(1e-3, 0.4)),
                                       ht::dim("kind", &Config::kind, ht::grid({1, 2, 3})));
  const auto results = run(mixed, "mixed", ht::Fifo{.max_steps = 2}, 4);
  std::map<int, int> kinds;
  for (const auto& trial : results.trials()) ++kinds[trial.params.get<int>("kind")];
  CHECK(kinds == std::map<int, int>{{1, 4}, {2, 4}, {3, 4}});
  CHECK(run(mixed, "grid", ht::Fifo{.max_steps = 1}, 0, ht::Grid{.resolution = 5}).size() == 15);
  CHECK(run(mixed, "repeats", ht::Fifo{.max_steps = 1}, 6, ht::repeat(ht::Random{}, 2)).size() == 6);
}
