// Tunes a neural network on the handwritten digits with ASHA. Every trial saves checkpoints, so that the sweep survives
// a kill -9 at any moment: run it again with --resume.
#include "digits/augment.hpp"
#include "digits/data.hpp"
#include "digits/mlp.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/record/journal_schema.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace ht = hypertune;

namespace {

struct Config {
  int hidden = 64;
  int second = 0;  // units of a second hidden layer; 0: no second layer
  digits::Optimizer optimizer = digits::Optimizer::adam;
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double dropout = 0;
  double distortion = 0;
  int batch = 32;
};

const auto space =
    ht::space<Config>(ht::dim("hidden", &Config::hidden, ht::log_int(48, 384)),
                      ht::dim("second", &Config::second, ht::ordinal({0, 32, 64, 128})),
                      ht::dim("optimizer", &Config::optimizer,
                              ht::choice({digits::Optimizer::sgd, digits::Optimizer::adam}).names({"sgd", "adam"})),
                      ht::dim("learning_rate", &Config::learning_rate, ht::log_uniform(1e-3, 0.1)),
                      ht::dim("momentum", &Config::momentum, ht::uniform(0.5, 0.98)).when("optimizer", "sgd"),
                      ht::dim("dropout", &Config::dropout, ht::uniform(0.0, 0.5)),
                      ht::dim("distortion", &Config::distortion, ht::uniform(0.2, 0.8)),
                      ht::dim("batch", &Config::batch, ht::ordinal({16, 32, 64})));

constexpr int max_epochs = 81;

// Loaded once, shared by all trials. `test` is for the final score; no trial sees it.
struct Data {
  digits::ImageSet train, validation, test;
};
std::string data_file = HYPERTUNE_DIGITS;
const Data& data() {
  static const Data loaded = [] {
    auto [train, validation] = digits::load(data_file);
    auto test = digits::hold_out(train);
    return Data{std::move(train), std::move(validation), std::move(test)};
  }();
  return loaded;
}

digits::Mlp network_of(const Config& config, std::uint64_t seed) {
  digits::MlpOptions options;
  options.layers = {64, config.hidden, 10};
  if (config.second > 0) options.layers.insert(options.layers.end() - 1, config.second);
  options.optimizer = config.optimizer;
  options.learning_rate = config.learning_rate;
  options.momentum = config.momentum;
  options.dropout = config.dropout;
  options.batch = config.batch;
  options.seed = seed;
  return digits::Mlp(options);
}

ht::Training train(Config config, ht::Context& context) {
  digits::Mlp network = network_of(config, context.seed());
  const auto save = [&](ht::CheckpointWriter& out) { network.save(out.file("network.bin")); };
  const auto load = [&](const ht::Checkpoint& in) { network.load(in.file("network.bin")); };
  context.checkpoints(save, load);  // continues from the last checkpoint, if there is one

  const auto& [training, validation, test] = data();
  for (int epoch = context.next_step(); epoch < max_epochs; ++epoch) {
    const auto images = digits::augmented(training.images, config.distortion, context.seed() + std::uint64_t(epoch));
    const double loss = network.train_epoch(images, training.labels);
    const double accuracy = network.accuracy(validation.images, validation.labels);
    co_yield ht::report("accuracy", accuracy, "loss", loss);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  ht::Options options{.name = "digits",
                      .metric = "accuracy",
                      .mode = ht::Mode::maximize,
                      .samples = 120,
                      .schedule = ht::Asha{.grace_period = 3, .max_steps = max_epochs, .reduction_factor = 3},
                      .max_retries = 3,
                      .checkpoint = {.every = 9, .keep = 1, .keep_best = 1},
                      .seed = 1,
                      .output = "runs/digits"};
  std::string executor = "threads";
  bool overwrite = false;

  CLI::App app("Tunes a neural network on handwritten digits.", "digits");
  app.add_option("--samples", options.samples, "How many configurations to try")->capture_default_str();
  app.add_option("--executor", executor, "Where trials run")
      ->check(CLI::IsMember({"threads", "processes", "inline"}))
      ->capture_default_str();
  app.add_option("--concurrency", options.concurrency, "Trials at once; 0: one per core")->capture_default_str();
  app.add_option("--seed", options.seed, "Of the configurations and of each training")->capture_default_str();
  app.add_option("--output", options.output, "The experiment's folder")->capture_default_str();
  app.add_option("--data", data_file, "The images")->check(CLI::ExistingFile);
  app.add_flag("--ordered", options.ordered, "Decide in the order of trials and steps: the same result every time");
  app.add_flag("--resume", options.resume, "Go on with the experiment in --output; --samples counts from its start");
  app.add_flag("--overwrite", overwrite, "Delete an earlier experiment in --output")->excludes("--resume");
  CLI11_PARSE(app, argc, argv);

  if (overwrite && ht::has_journal(options.output)) std::filesystem::remove_all(options.output);
  if (executor == "processes") options.executor = ht::processes();
  if (executor == "inline") options.executor = ht::run_inline();

  data();  // loaded before the workers are forked, so that they share the memory
  const std::filesystem::path output = options.output;
  const auto results = ht::tune(space, train, std::move(options));

  fmt::print("\n{}\n", results.table({.rows = 10}));
  const auto best = results.best();
  fmt::print("Best validation accuracy: {:.2f} % (trial {} after {} epochs)\n{}\n", 100 * best.best->value, best.trial,
             best.best->step + 1, best.params);
  if (const auto file = output / "best/checkpoint/network.bin"; std::filesystem::exists(file)) {
    digits::Mlp network = network_of(best.config(space), 0);
    network.load(file);
    const auto& test = data().test;
    fmt::print("Test accuracy: {:.2f} % of {} digits that no trial has seen (its checkpoint after {} epochs)\n",
               100 * network.accuracy(test.images, test.labels), test.size(), network.epochs());
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "digits: %s\n", error.what());
  return 1;
}
