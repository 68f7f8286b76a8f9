// A metric with a bound: a table that approximates the square root as well as it can, but has to fit into 512 bytes.
// Trials that violate the bound still run, and the searcher learns from them. The best trial is one that meets it.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ht = hypertune;

struct Config {
  int entries = 2;    // of the table
  double warp = 1.0;  // above 1: more entries near 0, where the curve is steep
};

// The largest error of linear interpolation between the entries. A trial may be a plain function that returns a report.
ht::Report measure(const Config& config) {
  double error = 0;
  for (int i = 1; i < config.entries; ++i) {
    const double from = std::pow((i - 1.0) / (config.entries - 1), config.warp);
    const double to = std::pow(double(i) / (config.entries - 1), config.warp);
    const double slope = (std::sqrt(to) - std::sqrt(from)) / (to - from);
    const double worst = 1 / (4 * slope * slope);  // where the curve has this slope
    error = std::max(error, std::sqrt(worst) - (std::sqrt(from) + slope * (worst - from)));
  }
  return ht::report("error", error, "bytes", double(sizeof(double)) * config.entries);
}

int main() {
  const auto space = ht::space<Config>(ht::dim("entries", &Config::entries, ht::log_int(2, 4096)),
                                       ht::dim("warp", &Config::warp, ht::uniform(1.0, 8.0)));
  const auto results =
      ht::tune(space, measure,
               {.name = "constrained", .metric = "error", .constraints = {ht::at_most("bytes", 512)}, .samples = 100});
  fmt::print("{}\n{}\n", results.table({.rows = 5}), results.best());
}
