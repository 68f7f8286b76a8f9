// What earlier experiments found, told to a searcher.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <cmath>
#include <filesystem>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
  double y = 0;
};

const auto space =
    ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)), ht::dim("y", &Config::y, ht::uniform(0.0, 1.0)));

double bowl(const Config& c) { return std::pow(c.x - 0.3, 2) + std::pow(c.y - 0.8, 2); }

ht::Results tuned(const std::filesystem::path& output, ht::AnySearcher search, int samples) {
  return ht::tune(space, bowl,
                  {.samples = samples,
                   .search = std::move(search),
                   .executor = ht::run_inline(),
                   .seed = 3,
                   .output = output,
                   .display = ht::Display::quiet});
}

}  // namespace

TEST_CASE("every searcher begins where the earlier experiments ended") {
  const TemporaryDirectory directory;
  const auto before = directory.path() / "before";
  const double best = tuned(before, ht::GaussianProcess{}, 25).best().best->value;
  REQUIRE(best < 1e-3);
  const std::vector<ht::AnySearcher> searchers{ht::Auto{}, ht::Tpe{}, ht::GaussianProcess{}, ht::CmaEs{}, ht::Nsga2{}};
  for (const auto& searcher : searchers) {
    INFO(searcher.name());
    const auto output = directory.path() / searcher.name();
    const auto results = tuned(output, ht::warm_start(searcher, {before}), 8);
    REQUIRE(results.size() == 8);  // the earlier trials are none of this experiment
    if (searcher.name() != "nsga2")
      REQUIRE(results.best().best->value < 0.02);  // from nothing: about 0.1 (random: 0.09)
  }
}

TEST_CASE("a warm start from what cannot be used says why") {
  const TemporaryDirectory directory;
  const auto before = directory.path() / "before";
  tuned(before, ht::Random{}, 3);
  const auto other = ht::space(ht::dim("z", ht::uniform(0.0, 1.0)));
  const auto start = [&](const std::filesystem::path& from, std::vector<ht::Objective> objectives) {
    ht::tune(other, [](const ht::Params& p) { return p.get<double>("z"); },
             {.objectives = std::move(objectives),
              .samples = 1,
              .search = ht::warm_start(ht::Random{}, {from}),
              .output = directory.path() / "run",
              .display = ht::Display::quiet});
  };
  REQUIRE_THROWS_WITH(start(before, {}),
                      ContainsSubstring("none of its 3 trials fits this space") && ContainsSubstring("'x'"));
  REQUIRE_THROWS_WITH(start(directory.path() / "nothing", {}), ContainsSubstring("nothing"));
}
