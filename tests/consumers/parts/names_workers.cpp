// A trial of two workers.
#include <hypertune/hypertune.hpp>

namespace ht = hypertune;

struct Config {
  double x;
};

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));
  try {
    const auto results = ht::tune(space, [](const Config& config) { return config.x; },
                                  {.metric = "loss", .samples = 1, .workers = {2}, .executor = ht::threads(2)});
    fmt::print("{}\n", results.best());
  } catch (const ht::Error& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
