// A user-defined scheduler: it stops a trial whose loss is too far behind the best loss seen at the same step. The
// permitted distance shrinks with the steps. on_report() is the only function that a scheduler must have.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ht = hypertune;

struct StayClose {
  double slack = 0.5;  // how far behind the best loss a trial may be at the first step; it shrinks as 1/steps
  int max_steps = 50;  // steps of a trial

  std::vector<double> leader{};  // the best loss seen at each step

  ht::Decision on_report(const ht::Progress& p) {
    if (p.steps >= max_steps) return ht::Decision::complete;
    const auto at = static_cast<std::size_t>(p.steps);
    if (leader.size() <= at) leader.resize(at + 1, ht::worst_loss);
    leader[at] = std::min(leader[at], p.loss());
    return p.loss() > leader[at] + slack / p.steps ? ht::Decision::stop : ht::Decision::proceed;
  }
  std::string name() const { return "stay close"; }
};

struct Config {
  double rate = 0.1;
};

// Gradient descent on a parabola; too small a rate is slow, too large a one diverges.
ht::Training train(Config config, ht::Context& context) {
  double x = 1;
  for (int step = context.next_step(); step < 1000; ++step) {
    x -= config.rate * 2 * x;
    co_yield ht::report("distance", std::fabs(x));
  }
}

int main() {
  const auto space = ht::space<Config>(ht::dim("rate", &Config::rate, ht::log_uniform(1e-3, 2.0)));
  const auto results = ht::tune(
      space, train, {.name = "stay-close", .metric = "distance", .samples = 60, .schedule = StayClose{}, .seed = 1});
  fmt::print("{}\n", results.best());
}
