// ASHA with 1 to 500 simulated workers: how much sooner the same number of configurations is searched.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <cmath>
#include <map>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

}  // namespace

TEST_CASE("asha with up to 500 simulated workers scales near linearly", "[simulated]") {
  std::map<int, double> seconds;
  for (const int workers : {1, 10, 100, 500}) {
    TemporaryDirectory directory(TemporaryDirectory::memory());
    ht::Options o;
    o.search = ht::Random{};
    o.samples = 6000;
    o.schedule = ht::Asha{.max_steps = 9};
    // Steps last as differently as in the paper's simulations: by configuration, and by chance.
    o.executor = ht::simulated({.pool = workers,
                                .step_seconds = [](const ht::Params& p, int) { return 1 + p.get<double>("x") / 2; },
                                .straggle_probability = 0.05,
                                .straggle_factor = 3,
                                .seed = 2});
    o.output = directory.path() / "run";
    o.display = ht::Display::quiet;
    o.seed = 5;
    const auto results = ht::tune(
        space,
        [](Config config) -> ht::Training {
          for (int step = 1; step <= 9; ++step) co_yield ht::report("value", std::abs(config.x) + 0.3 / step);
        },
        o);
    CHECK(results.count(ht::TrialState::completed) + results.count(ht::TrialState::stopped) == 6000);
    CHECK(results.best().best->value < 0.06);
    seconds[workers] = results.experiment().updated;
  }
  for (const auto& [workers, time] : seconds)
    UNSCOPED_INFO(fmt::format("{:>4} workers: {:>8.1f} s, {:>6.1f} times as fast", workers, time, seconds[1] / time));
  CHECK(seconds[1] / seconds[10] > 9);
  CHECK(seconds[1] / seconds[100] > 80);
  CHECK(seconds[1] / seconds[500] > 280);
}
