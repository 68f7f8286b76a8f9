// The parts together: a small network trained by several ranks is the network that one worker trains.
#include "support/test.hpp"
#include "support/thread_ranks.hpp"

#include <hypertune/train/accumulator.hpp>
#include <hypertune/train/data_parallel.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/learning_rate.hpp>
#include <hypertune/train/loss_scaler.hpp>
#include <hypertune/train/remaining_epochs.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace hypertune;
using hypertune::test::run_ranks;

namespace {

constexpr std::size_t inputs = 3, hidden = 8, samples = 101, batch = 12;

/// Two layers with tanh between, and their gradients.
struct Network {
  std::vector<float> first = std::vector<float>(hidden * (inputs + 1)), second = std::vector<float>(hidden + 1);
  friend bool operator==(const Network&, const Network&) = default;

  double forward(std::span<const double> x, std::span<double> activations) const {
    double y = second[hidden];
    for (std::size_t h = 0; h < hidden; ++h) {
      double z = first[h * (inputs + 1) + inputs];
      for (std::size_t i = 0; i < inputs; ++i) z += first[h * (inputs + 1) + i] * x[i];
      activations[h] = std::tanh(z);
      y += second[h] * activations[h];
    }
    return y;
  }
};

/// A smooth function of each sample's index.
std::array<double, inputs> features(std::uint64_t sample) {
  const auto s = static_cast<double>(sample);
  return {std::sin(s), std::cos(1.7 * s), std::sin(0.3 * s + 1)};
}
double target(std::uint64_t sample) {
  const auto x = features(sample);
  return x[0] * x[1] + 0.5 * x[2];
}

/// All that a run is: what is committed, and comes from rank 0 to the others.
struct Run {
  Network weights, velocity;
  ElasticSampler::State place;
  LearningRate::State rate;
  LossScaler::State scale;
  std::string metrics;

  static Run beginning() {
    Run run;
    std::mt19937 random(5);
    for (auto* layer : {&run.weights.first, &run.weights.second})
      for (float& w : *layer) w = static_cast<float>(random() % 2001) / 1000.0F - 1;
    run.scale = LossScaler().state();
    run.metrics = Accumulator().state();
    return run;
  }
};

/// Up to `steps` steps from there, in a group of any size.
Run trained(Run run, const Communicator& communicator, std::uint64_t epochs, int steps) {
  const int rank = communicator.rank(), size = communicator.size();
  Network gradient;
  DataParallel gradients(communicator, {.bucket_bytes = 64, .first_bucket_bytes = 64, .in_place_bytes = 100});
  gradients.add(gradient.first);
  gradients.add(gradient.second);
  if (rank != 0) run.weights = {};
  gradients.broadcast(std::span(run.weights.first));
  gradients.broadcast(std::span(run.weights.second));
  ElasticSampler sampler(samples, {.seed = 3});
  sampler.restore(run.place);
  LearningRate rate({.rate = 0.05, .batch = batch / 2.0, .rule = BatchRule::linear, .warmup = 2});
  rate.restore(run.rate);
  LossScaler scaler({.interval = 20});
  scaler.restore(run.scale);
  Accumulator metrics;
  metrics.restore(run.metrics);

  for (const auto epoch : remaining_epochs(sampler, epochs)) {
    while (!sampler.done() && steps-- > 0) {
      const double progress = static_cast<double>(epoch) + static_cast<double>(sampler.processed()) / samples;
      const auto mine = sampler.next(batch, rank, size);
      const auto count = static_cast<std::int64_t>(mine.size());
      Network sum;
      std::array<double, hidden> active = {};
      for (const auto sample : mine) {
        const auto x = features(sample);
        const double off = run.weights.forward(x, active) - target(sample);
        metrics.add("loss", off * off / 2);
        const double dy = off * scaler.scale() / static_cast<double>(count);
        sum.second[hidden] += static_cast<float>(dy);
        for (std::size_t h = 0; h < hidden; ++h) {
          sum.second[h] += static_cast<float>(dy * active[h]);
          const double dz = dy * run.weights.second[h] * (1 - active[h] * active[h]);
          for (std::size_t i = 0; i < inputs; ++i) sum.first[h * (inputs + 1) + i] += static_cast<float>(dz * x[i]);
          sum.first[h * (inputs + 1) + inputs] += static_cast<float>(dz);
        }
      }
      gradients.begin(count);
      std::copy(sum.second.begin(), sum.second.end(), gradient.second.begin());
      gradients.ready(1);
      std::copy(sum.first.begin(), sum.first.end(), gradient.first.begin());
      gradients.ready(0);
      const double scale = scaler.scale();
      if (!scaler.update(gradients.reduce(count).finite())) continue;
      gradients.unscale(scale);
      gradients.clip_by_global_norm(5);
      const auto eta = static_cast<float>(rate.at(batch, progress));
      const auto step = [&](std::vector<float>& w, std::vector<float>& v, const std::vector<float>& g) {
        for (std::size_t i = 0; i < w.size(); ++i) w[i] -= eta * (v[i] = 0.9F * v[i] + g[i]);
      };
      step(run.weights.first, run.velocity.first, gradient.first);
      step(run.weights.second, run.velocity.second, gradient.second);
    }
    if (steps < 0) break;
    if (epoch + 1 < epochs) metrics.clear();
  }
  metrics.reduce(communicator);
  run.place = sampler.state();
  run.rate = rate.state();
  run.scale = scaler.state();
  run.metrics = metrics.state();
  return run;
}

std::vector<Run> trained_by(int size, const Run& from, std::uint64_t epochs, int steps) {
  std::vector<Run> runs(static_cast<std::size_t>(size));
  run_ranks(size, [&](const Communicator& communicator) {
    runs[static_cast<std::size_t>(communicator.rank())] = trained(from, communicator, epochs, steps);
  });
  return runs;
}

double loss_of(const Run& run) {
  double sum = 0;
  std::array<double, hidden> active = {};
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const auto x = features(sample);
    sum += std::pow(run.weights.forward(x, active) - target(sample), 2) / 2;
  }
  return sum / samples;
}

double distance(const Network& a, const Network& b) {
  double furthest = 0;
  for (std::size_t i = 0; i < a.first.size(); ++i)
    furthest = std::max(furthest, std::abs(double{a.first[i]} - b.first[i]));
  for (std::size_t i = 0; i < a.second.size(); ++i)
    furthest = std::max(furthest, std::abs(double{a.second[i]} - b.second[i]));
  return furthest;
}

double metric(const Run& run) {
  Accumulator metrics;
  metrics.restore(run.metrics);
  return metrics.values().at("loss");
}

constexpr std::uint64_t epochs = 8;
constexpr int all_steps = 1 << 20;

TEST_CASE("several ranks train the network that one worker trains") {
  const Run begin = Run::beginning();
  const Run one = trained_by(1, begin, epochs, all_steps)[0];
  CHECK(loss_of(one) < 0.2 * loss_of(begin));
  for (const int size : {2, 4, 5}) {
    const auto runs = trained_by(size, begin, epochs, all_steps);
    CAPTURE(size);
    for (const auto& run : runs) {
      CHECK(run.weights == runs[0].weights);
      CHECK(run.velocity == runs[0].velocity);
      CHECK(run.metrics == runs[0].metrics);
    }
    CHECK(distance(runs[0].weights, one.weights) < 1e-4);
    CHECK(metric(runs[0]) == Approx(metric(one)).epsilon(1e-4));
    CHECK(runs[0].scale == one.scale);
    CHECK(trained_by(size, begin, epochs, all_steps)[0].weights == runs[0].weights);
  }
}

TEST_CASE("ranks connected by Gloo train the same network") {
  if (!has_gloo()) return;
  const Run begin = Run::beginning();
  const Run one = trained_by(1, begin, epochs, all_steps)[0];
  std::vector<Run> runs(3);
  test::run_gloo_ranks(3, [&](const Communicator& communicator) {
    runs[static_cast<std::size_t>(communicator.rank())] = trained(begin, communicator, epochs, all_steps);
  });
  for (const auto& run : runs) {
    CHECK(run.weights == runs[0].weights);
    CHECK(run.metrics == runs[0].metrics);
  }
  CHECK(distance(runs[0].weights, one.weights) < 1e-4);
}

TEST_CASE("a group that changes in size, and falls back to its commits, trains the same network") {
  const Run one = trained_by(1, Run::beginning(), epochs, all_steps)[0];
  Run committed = Run::beginning();
  std::mt19937 random(8);
  while (committed.place.epoch < epochs) {
    const int size = 1 + static_cast<int>(random() % 5), steps = static_cast<int>(random() % 15);
    const auto runs = trained_by(size, committed, epochs, steps);
    if (random() % 3 != 0) committed = runs.back().place.epoch < epochs ? runs.back() : runs.front();
  }
  CHECK(distance(committed.weights, one.weights) < 1e-4);
  CHECK(committed.scale == one.scale);
}

TEST_CASE("a committed run goes on to the bit as the one that was not interrupted") {
  const Run begin = Run::beginning();
  const Run whole = trained_by(3, begin, epochs, all_steps)[0];
  const Run resumed = trained_by(3, trained_by(3, begin, epochs, 25)[0], epochs, all_steps)[0];
  CHECK(resumed.weights == whole.weights);
  CHECK(resumed.velocity == whole.velocity);
}

}  // namespace
