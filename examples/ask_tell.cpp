// Ask and tell: your own loop runs the trials; hypertune proposes configurations, decides which trials to stop, and
// records results. A result is durable when tell() returns. With .resume = true the next start of this program
// continues the experiment.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <cmath>

namespace ht = hypertune;

struct Config {
  double x = 0, y = 0;
};

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-5.0, 10.0)),
                                       ht::dim("y", &Config::y, ht::uniform(0.0, 15.0)));
  ht::Study study(space, ht::Random{},
                  {.name = "ask_tell",
                   .metric = "height",
                   .samples = 100,
                   .schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3}});

  while (auto trial = study.ask()) {
    const auto [x, y] = trial->config;
    const double branin = std::pow(y - 0.12918 * x * x + 1.59155 * x - 6, 2) + 9.60211 * std::cos(x) + 10;

    // Report intermediate values. The scheduler may end the trial at a report; then there is nothing to tell.
    bool ended = false;
    for (int step = trial->next_step; step < 8 && !ended; ++step)
      ended = study.report(*trial, branin + 20.0 / (step + 1), step) != ht::Decision::proceed;
    if (!ended) study.tell(*trial, branin);
  }
  fmt::print("{}\n", study.results().best());
}
