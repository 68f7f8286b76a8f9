// A small sweep in the folder given; exits 0 if it did what it should.
#include "sweep.hpp"

#include <fmt/format.h>

namespace ht = hypertune;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::remove_all(argv[1]);
  const auto results = ht::tune(make_space(), train,
                                {.name = "consumer",
                                 .metric = "loss",
                                 .samples = 20,
                                 .schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3},
#ifdef APP_HAS_PROCESSES
                                 .executor = ht::processes({.pool = 2}),
#endif
                                 .seed = 1,
                                 .output = argv[1],
                                 .display = ht::Display::quiet});
  const auto best = results.best();
  fmt::print("{} trials, best {}\n", results.size(), best);
  return results.size() == 20 && best.best->value < 0.2 ? 0 : 1;
}
