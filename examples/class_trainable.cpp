// A trial as a class: set up by its constructor, trained by step(), saved and restored, and reused for the next trial
// by reset(), so that expensive setup happens once per worker. Here: logistic regression by gradient descent.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace ht = hypertune;

struct Config {
  double learning_rate = 0.1;
  double penalty = 0;
};

struct Sample {
  std::array<double, 2> x;
  double label;
};

/// Samples of two overlapping point clouds.
std::vector<Sample> make_samples(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    const double label = i % 2;
    samples.push_back({{normal(random) + 1.5 * label, normal(random) - label}, label});
  }
  return samples;
}

class Trainer {
 public:
  explicit Trainer(const Config& config)
      : config_(config), train_(make_samples(1, 2000)), held_out_(make_samples(2, 500)) {}

  // Makes one training step and returns its report. A trial of this class ends when the scheduler ends it.
  ht::Report step() {
    std::array<double, 3> gradient{};
    for (const Sample& sample : train_) {
      const double error = predict(sample) - sample.label;
      for (std::size_t i = 0; i < 2; ++i) gradient[i] += error * sample.x[i] / double(train_.size());
      gradient[2] += error / double(train_.size());
    }
    for (std::size_t i = 0; i < 3; ++i)
      weights_[i] -= config_.learning_rate * (gradient[i] + config_.penalty * weights_[i]);
    return ht::report("loss", loss(held_out_), "train_loss", loss(train_));
  }

  // Called between steps, when the checkpoint policy or a termination notice asks for it.
  void save(ht::CheckpointWriter& out) const {
    std::ofstream file(out.file("weights.txt"));
    file.precision(17);
    for (const double weight : weights_) file << weight << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write the weights");
  }
  void restore(const ht::Checkpoint& in) {
    std::ifstream file(in.file("weights.txt"));
    for (double& weight : weights_) file >> weight;
    if (!file) throw std::runtime_error("cannot read the weights");
  }

  // Starts over with another trial's configuration; keeps the data.
  bool reset(const Config& config) {
    config_ = config;
    weights_ = {};
    return true;
  }

 private:
  double predict(const Sample& sample) const {
    return 1 / (1 + std::exp(-(weights_[0] * sample.x[0] + weights_[1] * sample.x[1] + weights_[2])));
  }
  double loss(const std::vector<Sample>& samples) const {
    double sum = 0;
    for (const Sample& sample : samples) {
      const double p = predict(sample);
      sum -= std::log(std::max(1e-12, sample.label > 0.5 ? p : 1 - p));
    }
    return sum / double(samples.size());
  }

  Config config_;
  std::vector<Sample> train_, held_out_;
  std::array<double, 3> weights_{};
};

int main() {
  const auto space = ht::space<Config>(ht::dim("learning_rate", &Config::learning_rate, ht::log_uniform(1e-3, 10.0)),
                                       ht::dim("penalty", &Config::penalty, ht::log_uniform(1e-6, 1.0)));
  const auto results =
      ht::tune<Trainer>(space, {.name = "class_trainable",
                                .metric = "loss",
                                .samples = 60,
                                .schedule = ht::Asha{.grace_period = 2, .max_steps = 54, .reduction_factor = 3},
                                .checkpoint = {.every = 10}});
  fmt::print("{}\n{}\n", results.table({.rows = 5}), results.best());
}
