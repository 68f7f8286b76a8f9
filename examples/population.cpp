// Population based training of noisy gradient descent. A large step is best far from the minimum, a small one near it, so no
// constant step size is good. Trials that fall behind go on from the state of a good one, with a changed step size: what is
// found is a schedule.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <random>
#include <stdexcept>

namespace ht = hypertune;

struct Config {
  double step_size = 0.1;
};

ht::Training descend(Config config, ht::Context& context) {
  std::array<double, 100> point;
  point.fill(10);
  // Pbt needs both: a trial goes on from another one's state by loading it.
  const auto save = [&](ht::CheckpointWriter& out) {
    std::ofstream file(out.file("point.txt"));
    file.precision(17);
    for (const double x : point) file << x << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write the point");
  };
  const auto load = [&](const ht::Checkpoint& in) {
    std::ifstream file(in.file("point.txt"));
    for (double& x : point) file >> x;
    if (!file) throw std::runtime_error("cannot read the point");
  };
  context.checkpoints(save, load);

  for (int step = context.next_step(); step < 60; ++step) {
    std::mt19937_64 random(context.seed() + std::uint64_t(step));
    std::normal_distribution<double> noise;
    double distance = 0;
    for (double& x : point) {
      x -= config.step_size * (x + noise(random));  // the gradient of x * x / 2, not known exactly
      distance += x * x;
    }
    co_yield ht::report("distance", distance);
  }
}

int main() {
  const auto space = ht::space<Config>(ht::dim("step_size", &Config::step_size, ht::log_uniform(1e-3, 1.0)));
  const auto results = ht::tune(space, descend,
                                {.name = "population",
                                 .metric = "distance",
                                 .samples = 12,
                                 .schedule = ht::Pbt{.perturbation_interval = 5, .max_steps = 60}});
  fmt::print("{}\n", results.best());
  for (const auto& part : results.schedule(results.best()))
    fmt::print("from step {}: step size {:.4f}, by trial {}\n", part.from_step, part.params.get<double>("step_size"),
               part.trial);
}
