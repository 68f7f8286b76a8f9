// An experiment like the quickstart, on 10,000 workers that do not exist. The simulated executor runs the same tuner,
// searcher and scheduler in virtual time, with slow machines and failures; results are identical in every run. Within
// seconds on a laptop it shows how a sweep will go before it is paid for.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cmath>

namespace ht = hypertune;

struct Config {
  double learning_rate = 0;
  double capacity = 0;
};

// The learning curve of a model that is never trained: the error falls with the steps, and is lower for better configs.
ht::Training learn(Config config, ht::Context& context) {
  const double misfit = std::pow(std::log10(config.learning_rate) + 2.5, 2) + std::pow(config.capacity - 0.6, 2);
  for (int step = context.next_step(); step < 81; ++step)
    co_yield ht::report("error", 0.02 + 0.1 * misfit + 0.9 / (1.0 + step));
}

int main() {
  const auto space = ht::space<Config>(ht::dim("learning_rate", &Config::learning_rate, ht::log_uniform(1e-5, 1.0)),
                                       ht::dim("capacity", &Config::capacity, ht::uniform(0.0, 1.0)));
  const auto begin = std::chrono::steady_clock::now();
  const auto results = ht::tune(space, learn,
                                {.name = "simulated",
                                 .metric = "error",
                                 .samples = 20'000,
                                 .schedule = ht::Asha{.grace_period = 1, .max_steps = 81, .reduction_factor = 3},
                                 .max_retries = 5,
                                 .executor = ht::simulated({.pool = 10'000, .seed = 7}),
                                 .seed = 1});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{} trials on 10,000 workers, simulated within {:.1f} s\n{}\n", results.size(), seconds, results.best());
}
