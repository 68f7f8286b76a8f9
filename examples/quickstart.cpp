// Tunes the step size and momentum of gradient descent in a narrow valley, and stops hopeless trials early.
#include <hypertune/hypertune.hpp>

#include <cmath>

namespace ht = hypertune;

struct Config {
  double step_size;
  double momentum;
};

// A trial is a loop that reports by co_yield. To stop it early, hypertune simply does not resume it.
ht::Training descend(Config config) {
  double x = -1, y = 1, vx = 0, vy = 0;
  for (int step = 0; step < 100; ++step) {
    const double slope_x = -2 * (1 - x) - 40 * x * (y - x * x), slope_y = 20 * (y - x * x);
    x += vx = config.momentum * vx - config.step_size * slope_x;
    y += vy = config.momentum * vy - config.step_size * slope_y;
    co_yield ht::report("height", std::pow(1 - x, 2) + 10 * std::pow(y - x * x, 2));
  }
}

int main() {
  const auto space = ht::space<Config>(ht::dim("step_size", &Config::step_size, ht::log_uniform(1e-4, 1.0)),
                                       ht::dim("momentum", &Config::momentum, ht::uniform(0.0, 0.99)));
  const auto results = ht::tune(space, descend,
                                {.name = "quickstart",
                                 .metric = "height",
                                 .samples = 200,
                                 .schedule = ht::Asha{.grace_period = 1, .max_steps = 100, .reduction_factor = 3}});
  fmt::print("{}\n", results.best());
}
