// Tunes the digits network; one worker trains each trial. Compare it with several_workers.cpp, which uses four.
#include "digits/data.hpp"
#include "digits/mlp.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/train/elastic_sampler.hpp>

namespace ht = hypertune;

ht::Training train(const ht::Params& params, ht::Context& context) {
  static const auto [training, validation] = digits::load(HYPERTUNE_DIGITS);
  digits::Mlp network({.layers = {64, 128, 10}, .seed = context.seed()});
  ht::ElasticSampler sampler(training.labels.size());
  for (int epoch = 0; epoch < 9; ++epoch) {
    while (!sampler.done()) {
      const auto batch = sampler.next(64, 0, 1);
      network.loss_and_gradient(training.images, training.labels, batch);
      network.step(params.get<double>("learning_rate"));
    }
    sampler.next_epoch();
    co_yield ht::report("accuracy", network.accuracy(validation.images, validation.labels));
  }
}

int main() {
  const auto space = ht::space(ht::dim("learning_rate", ht::log_uniform(1e-4, 1e-1)));
  const auto results = ht::tune(space, train,
                                {.name = "several_workers",
                                 .metric = "accuracy",
                                 .mode = ht::Mode::maximize,
                                 .samples = 6,
                                 .executor = ht::threads(4)});
  fmt::print("{}\n", results.best());
}
