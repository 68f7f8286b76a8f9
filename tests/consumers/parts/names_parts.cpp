// Uses what is in other parts of the definitions than the core.
#include <hypertune/hypertune.hpp>

namespace ht = hypertune;

struct Config {
  double x;
};

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));
  const auto train = [](const Config& config) { return config.x; };
  ht::tune(space, train,
           {.metric = "loss",
            .samples = 4,
            .search = ht::GaussianProcess{},
            .schedule = ht::MedianStopping{},
            .executor = ht::simulated()});
}
