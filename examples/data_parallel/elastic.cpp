// Elastic training: up to four processes train one network together. With --kill one of them is killed during the run:
// the others continue from their last commit, and a new worker joins them.
#include "digits/data.hpp"
#include "digits/mlp.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/train/accumulator.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>
#include <hypertune/train/learning_rate.hpp>

#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;

namespace {

constexpr int epochs = 12;
constexpr int max_workers = 4;
constexpr int worker_batch = 16;  // images per step of each worker
bool kill_one = false;

const digits::Digits& data() {
  static const digits::Digits loaded = digits::load(HYPERTUNE_DIGITS);
  return loaded;
}

/// Whether this is the worker that --kill kills, in the middle of the fourth epoch. True only once in a trial.
bool is_to_die(const ht::ElasticState& group, const ht::Context& context, const ht::ElasticSampler& sampler) {
  if (!kill_one || sampler.epoch() != 3 || sampler.remaining() > sampler.samples() / 2) return false;
  if (group.rank() != group.size() - 1) return false;
  std::FILE* const mark = std::fopen((context.directory() / "killed").c_str(), "wx");  // fails if it exists
  if (mark != nullptr) std::fclose(mark);
  return mark != nullptr;
}

ht::Training train(const ht::Params& params, ht::Context& context) {
  const auto& [training, validation] = data();
  digits::Mlp network({.layers = {64, 128, 10}, .seed = context.seed()});

  int epoch = 0;
  double accuracy = 0, loss = 0, rate = 0;
  ht::ElasticSampler sampler(training.labels.size(), {.seed = context.seed()});
  ht::LearningRate rule({.rate = params.get<double>("learning_rate"),
                         .batch = worker_batch,
                         .rule = ht::BatchRule::square_root,
                         .warmup = 2});

  ht::ElasticState group(context);  // the workers that train together
  ht::DataParallel& gradients = group.gradients();
  gradients.add(network.gradients());

  // The common state of all workers. After a loss they go back to their last commit(), and a worker that joins receives
  // it. Checkpoints are made of it, too.
  for (const auto values : network.state()) group.keep(values);
  group.keep(network.updates()).keep(sampler).keep(rule).keep(epoch).keep(accuracy).keep(loss).keep(rate);
  group.checkpoints();

  const auto train_an_epoch = [&] {
    while (!sampler.done()) {
      const double done = static_cast<double>(sampler.processed()) / static_cast<double>(sampler.samples());
      rate = rule.at(worker_batch * group.size(), epoch + done);
      const auto batch = sampler.next_per_worker(worker_batch, group.rank(), group.size());
      network.loss_and_gradient(training.images, training.labels, batch);
      if (is_to_die(group, context, sampler)) std::raise(SIGKILL);
      gradients.reduce(std::ssize(batch));  // now the gradients are the mean over the batches of all workers
      network.step(rate);
      group.commit();
    }
  };
  const auto evaluate = [&] {  // each worker evaluates its share
    const auto share = ht::even_share(validation.labels.size(), group.rank(), group.size());
    const auto begin = static_cast<std::ptrdiff_t>(share.begin), count = static_cast<std::ptrdiff_t>(share.size());
    const std::vector<int> labels(validation.labels.begin() + begin, validation.labels.begin() + begin + count);
    const Eigen::MatrixXf images = validation.images.middleCols(begin, count);
    ht::Accumulator metrics;
    metrics.add("accuracy", network.accuracy(images, labels), static_cast<double>(count));
    metrics.add("loss", network.loss(images, labels), static_cast<double>(count));
    const auto of_all = metrics.reduce(group.communicator());
    accuracy = of_all.at("accuracy");
    loss = of_all.at("loss");
  };

  for (; epoch < epochs; ++epoch) {
    group.run([&] {  // called again, from the last commit, when the workers change
      train_an_epoch();
      evaluate();
      sampler.next_epoch();
    });
    co_yield ht::report("accuracy", accuracy, "loss", loss, "rate", rate, "workers", group.size());
  }
}

/// Prints a line for each epoch, and one for each change of the workers.
struct Lines {
  void on_trial_start(const ht::record::TrialStarted&) {
    fmt::print("epoch  workers  images a step  learning rate  loss    accuracy\n");
  }
  void on_trial_report(const ht::record::TrialReported& report) {
    std::map<std::string, double> values;
    for (const auto& [name, value] : report.metrics) values[name] = value;
    const double workers = values["workers"];
    fmt::print("{:5}  {:7}  {:13}  {:13.5f}  {:.4f}  {:6.2f} %\n", report.step + 1, workers, workers * worker_batch,
               values["rate"], values["loss"], 100 * values["accuracy"]);
  }
  void on_trial_resize(const ht::record::TrialResized& change) {
    fmt::print("{:>14}  from now on: {}\n", change.workers.size(), change.why);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  kill_one = argc == 2 && argv[1] == std::string_view("--kill");
  if (argc > 1 && !kill_one) {
    std::fprintf(stderr, "usage: elastic [--kill]\n");
    return 2;
  }
  data();  // loaded before the workers are forked, so that they share the memory
  const auto results = ht::tune(ht::space(ht::dim("learning_rate", ht::log_uniform(1e-3, 4e-3))), train,
                                {.name = "elastic",
                                 .metric = "accuracy",
                                 .mode = ht::Mode::maximize,
                                 .samples = 1,
                                 .workers = {.min = 1, .max = max_workers},
                                 .max_retries = 1,
                                 .checkpoint = {.every = 4, .keep = 1},
                                 .executor = ht::processes({.pool = max_workers}),
                                 .display = ht::Display::quiet,
                                 .callbacks = {Lines{}}});
  const auto trial = results.best();
  fmt::print("\nThe best accuracy was {:.2f} %, after {} epochs. The trial was started {} and failed {} times.\n",
             100 * trial.best->value, trial.best->step + 1, trial.attempts == 1 ? "once" : "again", trial.failures[0]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic: %s\n", error.what());
  return 1;
}
