// Tunes a convolutional network on the handwritten digits. If there are GPUs, each trial takes a fraction of one, so
// that several trials share a GPU; otherwise the trials train on the CPU.
#include "cuda_convnet/state_file.hpp"
#include "cuda_convnet/trainer.hpp"
#include "digits/augment.hpp"
#include "digits/data.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/train/connect.hpp>
#include <hypertune/train/elastic_state.hpp>
#ifdef HYPERTUNE_EXAMPLE_NCCL
#include <hypertune/train/nccl_communicator.hpp>
#endif

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ht = hypertune;

namespace {

struct Config {
  int filters = 8;  // of the first convolution; the second has twice as many
  int hidden = 64;
  double learning_rate = 0.05;
  double momentum = 0.9;
  double weight_decay = 0;
  double distortion = 0.4;
  int batch = 32;
};

const auto space = ht::space<Config>(ht::dim("filters", &Config::filters, ht::ordinal({4, 8, 12})),
                                     ht::dim("hidden", &Config::hidden, ht::log_int(24, 96)),
                                     ht::dim("learning_rate", &Config::learning_rate, ht::log_uniform(3e-3, 0.2)),
                                     ht::dim("momentum", &Config::momentum, ht::uniform(0.6, 0.97)),
                                     ht::dim("weight_decay", &Config::weight_decay, ht::log_uniform(1e-6, 1e-3)),
                                     ht::dim("distortion", &Config::distortion, ht::uniform(0.1, 0.7)),
                                     ht::dim("batch", &Config::batch, ht::ordinal({16, 32, 64})));

// Set before the workers are forked.
int max_epochs = 18;
bool on_gpu = false, half = false;
std::string data_file = HYPERTUNE_DIGITS;

// Loaded once, shared by all trials. `test` is for the final score; no trial sees it.
struct Data {
  digits::ImageSet train, validation, test;
};
const Data& data() {
  static const Data loaded = [] {
    auto [train, validation] = digits::load(data_file);
    auto test = digits::hold_out(train);
    return Data{std::move(train), std::move(validation), std::move(test)};
  }();
  return loaded;
}

// `device`: its number in this process. If the GPU cannot be used, the trial says so once and trains on the CPU.
std::unique_ptr<convnet::Trainer> trainer_of(const Config& config, std::uint64_t seed, bool gpu, int device,
                                             bool several = false) {
  convnet::Options options;
  options.batch = static_cast<std::size_t>(config.batch);
  options.filters = {static_cast<std::size_t>(config.filters), static_cast<std::size_t>(2 * config.filters)};
  options.hidden = static_cast<std::size_t>(config.hidden);
  options.learning_rate = static_cast<float>(config.learning_rate);
  options.momentum = static_cast<float>(config.momentum);
  options.weight_decay = static_cast<float>(config.weight_decay);
  options.clip = 5;
  options.half = half;
  options.seed = seed;
  if (gpu) {
    const std::string reason = convnet::no_gpu_because();
    if (reason.empty()) return convnet::make_gpu_trainer(options, device);
    if (several) throw std::runtime_error("a worker's GPU cannot be used: " + reason);  // the other workers use theirs
    std::fprintf(stderr, "cuda_convnet: this trial trains on the CPU: %s\n", reason.c_str());
  }
  return convnet::make_cpu_trainer(options);
}

// Which of the workers of a trial this is.
struct Share {
  int rank = 0, workers = 1;
};

// One pass over the images in a new order, one batch per worker at a time; the incomplete batches at the end are left
// out. Returns the mean loss.
double train_epoch(convnet::Trainer& trainer, const Eigen::MatrixXf& images, const std::vector<int>& labels, int batch,
                   std::uint64_t seed, Share share) {
  std::mt19937_64 random(seed);
  std::vector<Eigen::Index> order(labels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Eigen::Index>(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const auto size = static_cast<std::size_t>(batch);
  Eigen::MatrixXf some(images.rows(), batch);
  std::vector<std::int32_t> some_labels(size);
  double sum = 0;
  const auto workers = static_cast<std::size_t>(share.workers), rank = static_cast<std::size_t>(share.rank);
  const std::size_t batches = order.size() / (size * workers);
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t first = (b * workers + rank) * size;
    for (std::size_t i = 0; i < size; ++i) {
      some.col(static_cast<Eigen::Index>(i)) = images.col(order[first + i]);
      some_labels[i] = labels[static_cast<std::size_t>(order[first + i])];
    }
    sum += trainer.train(some.data(), some_labels.data());
  }
  return sum / static_cast<double>(batches);
}

convnet::Score score(convnet::Trainer& trainer, const digits::ImageSet& set) {
  const std::vector<std::int32_t> labels(set.labels.begin(), set.labels.end());
  return trainer.evaluate(set.images.data(), labels.data(), labels.size());
}

// The workers of a trial on GPUs reduce their gradients on the GPU, by NCCL.
ht::Communicator connect(const ht::GroupPlace& place, ht::Rendezvous& rendezvous, const ht::CommunicatorOptions& how,
                         void* stream) {
  if (stream != nullptr && place.size() > 1) {
#ifdef HYPERTUNE_EXAMPLE_NCCL
    return ht::connect_nccl(place, rendezvous, how, {.stream = stream});
#else
    throw std::runtime_error("several workers on GPUs need NCCL, and this program was built without it (NCCL_ROOT)");
#endif
  }
  return ht::connect(place, rendezvous, how);
}

ht::Training train(Config config, ht::Context& context) {
  const bool gpu = on_gpu && !context.slot().gpus.empty();
  // This process sees only the GPUs of its slot, numbered from 0.
  const auto trainer = trainer_of(config, context.seed(), gpu, 0, context.group().formed());
  const auto save = [&](ht::CheckpointWriter& out) { convnet::save(trainer->state(), out.file("network.bin")); };
  const auto load = [&](const ht::Checkpoint& in) {
    trainer->restore(convnet::load(in.file("network.bin"), trainer->parameter_count()));
  };
  context.checkpoints(save, load);

  // With --workers, several workers train together. Their common state is committed once an epoch: copying everything
  // from the GPU in each step would cost too much.
  const auto memory = trainer->gradient_memory();
  ht::ElasticState group(context, {.gradients = {.memory = memory},
                                   .connect = [memory](const auto& place, auto& rendezvous, const auto& how) {
                                     return connect(place, rendezvous, how, memory->stream());
                                   }});
  auto& gradients = group.gradients();
  for (const auto gradient : trainer->gradients()) gradients.add(gradient);
  trainer->train_with({.begin = [&] { gradients.begin(config.batch); },
                       .reduce = [&] { gradients.reduce(config.batch); },
                       .ready = [&](std::size_t layer) { gradients.ready(layer); }});
  int epoch = context.next_step();
  double loss = 0;
  const auto pack = [&] { return convnet::encoded(trainer->state()); };
  const auto unpack = [&](std::string_view bytes) {
    trainer->restore(convnet::decoded(bytes, trainer->parameter_count(), "what the workers keep"));
  };
  group.keep(pack, unpack).keep(epoch).keep(loss);

  const auto& [training, validation, test] = data();
  for (; epoch < max_epochs; ++epoch) {
    group.run([&] {
      const std::uint64_t seed = context.seed() + std::uint64_t(epoch);
      const auto images = digits::augmented(training.images, config.distortion, seed);
      const double own =
          train_epoch(*trainer, images, training.labels, config.batch, seed, {group.rank(), group.size()});
      loss = group.communicator().all_reduce(own, ht::Reduction::mean);
    });
    const double accuracy = score(*trainer, validation).accuracy;
    co_yield ht::report("accuracy", accuracy, "loss", loss);
  }
}

// Does not initialise CUDA: that must not happen before the workers are forked, as CUDA does not survive a fork.
std::string no_gpu_here() {
  if (!convnet::built_with_cuda()) return convnet::no_gpu_because();
  return ht::local::usable_gpus().empty() ? "no GPU is found" : "";
}

}  // namespace

int main(int argc, char** argv) try {
  ht::Options options{.name = "cuda_convnet",
                      .metric = "accuracy",
                      .mode = ht::Mode::maximize,
                      .samples = 24,
                      .max_retries = 3,
                      .checkpoint = {.every = 6, .keep = 1, .keep_best = 1},
                      .seed = 1,
                      .output = "runs/cuda_convnet"};
  double share = 0.25;
  int min_workers = 0;
  bool cpu = false, overwrite = false;

  CLI::App app("Tunes a convolutional network on handwritten digits.", "cuda_convnet");
  app.add_option("--samples", options.samples, "How many configurations to try")->capture_default_str();
  app.add_option("--epochs", max_epochs, "Of the longest trials")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--gpus", share, "The part of a GPU that a trial gets; with --workers 1 for each of them")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app.add_option("--workers", options.workers.max, "So many train each trial together, each on a --gpus of its own")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--min-workers", min_workers, "Fewer, down to so many, where there is no more room or some are lost")
      ->check(CLI::PositiveNumber);
  app.add_option("--concurrency", options.concurrency, "Trials at once; 0: as many as there is room for")
      ->capture_default_str();
  app.add_flag("--cpu", cpu, "Leave GPUs alone");
  app.add_flag("--half", half, "Mixed precision: 16 bits, with a scaled loss (slow on a CPU)");
  app.add_option("--seed", options.seed, "Of the configurations and of each training")->capture_default_str();
  app.add_option("--output", options.output, "The experiment's folder")->capture_default_str();
  app.add_option("--data", data_file, "The images")->check(CLI::ExistingFile);
  app.add_flag("--resume", options.resume, "Go on with the experiment in --output; --samples counts from its start");
  app.add_flag("--overwrite", overwrite, "Delete an earlier experiment in --output")->excludes("--resume");
  CLI11_PARSE(app, argc, argv);
  options.schedule = ht::Asha{.grace_period = std::min(2, max_epochs), .max_steps = max_epochs, .reduction_factor = 3};

  if (overwrite && ht::has_journal(options.output)) std::filesystem::remove_all(options.output);
  const std::string reason = cpu ? "--cpu" : no_gpu_here();
  on_gpu = reason.empty();
  options.workers.min = min_workers > 0 ? min_workers : options.workers.max;
  if (options.workers.several() && app.count("--gpus") == 0) share = 1;  // NCCL needs a device for each rank
  if (on_gpu) {
    options.resources = {.cpus = 1, .gpus = share};  // 0.25: four trials on each GPU
    options.executor = ht::processes();              // a process per trial frees the device memory when the trial ends
  } else {
    std::fprintf(stderr, "cuda_convnet: trials train on the CPU (%s)\n", reason.c_str());
    if (options.workers.several()) options.executor = ht::processes();
  }

  data();  // loaded before the workers are forked, so that they share the memory
  const std::filesystem::path output = options.output;
  const auto results = ht::tune(space, train, std::move(options));

  fmt::print("\n{}\n", results.table({.rows = 10}));
  const auto best = results.best();
  fmt::print("Best validation accuracy: {:.2f} % (trial {} after {} epochs)\n{}\n", 100 * best.best->value, best.trial,
             best.best->step + 1, best.params);
  if (const auto file = output / "best/checkpoint/network.bin"; std::filesystem::exists(file)) {
    const auto trainer = trainer_of(best.config(space), 0, false, 0);  // on the CPU
    trainer->restore(convnet::load(file, trainer->parameter_count()));
    fmt::print("Test accuracy: {:.2f} % of {} digits that no trial has seen\n",
               100 * score(*trainer, data().test).accuracy, data().test.size());
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "cuda_convnet: %s\n", error.what());
  return 1;
}
