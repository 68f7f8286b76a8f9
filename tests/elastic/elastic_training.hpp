// A training whose weights depend on each sample, each batch and its place: what is lost or done twice shows.
#pragma once

#include <hypertune/hypertune.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <fcntl.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace hypertune::inline v0::test {

inline constexpr std::uint64_t samples = 240;
inline constexpr int epochs = 4;

/// What happens to a worker at a batch: called before its gradients are reduced.
using Fate = std::function<void(const ElasticState& group, Context& context, int epoch, int batch)>;

/// Gradients are whole numbers, so that sums do not depend on their order; weights depend on each batch and its place.
struct Model {
  std::vector<double> weights = std::vector<double>(5);
  std::vector<double> gradient = std::vector<double>(5);
  void backward(const std::vector<std::uint64_t>& batch) {
    gradient.assign(gradient.size(), 0);
    for (const std::uint64_t sample : batch)
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] += static_cast<double>((sample * (i + 3)) % 17) - static_cast<double>(i);
    for (double& value : gradient) value /= batch.empty() ? 1 : static_cast<double>(batch.size());
  }
  void step() {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weights[i] * 0.96875 - gradient[i];
  }
};

inline Training train(const Params&, Context& context, Fate fate) {  // NOLINT: a coroutine keeps it
  Model model;
  ElasticState group(context, {.communicator = {.timeout = 2}});
  group.gradients().add(model.gradient);
  ElasticSampler sampler(samples, {.seed = 3});
  std::vector<std::int32_t> visits(samples);
  int epoch = context.next_step();
  group.keep(model.weights).keep(epoch).keep(sampler).keep(visits);
  context.checkpoints(
      [&](CheckpointWriter& out) {
        std::ofstream file(out.file("model"), std::ios::binary);
        file.write(reinterpret_cast<const char*>(model.weights.data()), 40);
        file.write(reinterpret_cast<const char*>(visits.data()), samples * 4);
      },
      [&](const Checkpoint& in) {
        std::ifstream file(in.file("model"), std::ios::binary);
        file.read(reinterpret_cast<char*>(model.weights.data()), 40);
        file.read(reinterpret_cast<char*>(visits.data()), samples * 4);
        sampler.restore({static_cast<std::uint64_t>(in.info().steps), 0});
      });
  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      for (int batch = 0; !sampler.done(); ++batch) {
        const auto before = sampler.processed();
        const auto mine = sampler.next(24, group.rank(), group.size());
        for (auto place = before; place < sampler.processed(); ++place) ++visits[sampler.sample(place)];
        model.backward(mine);
        fate(group, context, epoch, batch);
        group.gradients().reduce(static_cast<std::int64_t>(mine.size()));
        model.step();
        group.commit();
      }
      sampler.next_epoch();
    });
    double once = 1;
    for (const auto count : visits) once = count == epoch + 1 ? once : 0;
    double sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += model.weights[i] * static_cast<double>(i + 1);
    co_yield report("sum", sum, "once", once, "workers", static_cast<double>(group.size()), "generations",
                    static_cast<double>(group.generations()));
  }
}

/// The training with two parts in its loop, whose second one looks at all samples again, and with the checkpoints that
/// an ElasticState makes.
inline Training train_in_parts(const Params&, Context& context, Fate fate) {  // NOLINT: a coroutine keeps it
  Model model;
  ElasticState group(context, {.communicator = {.timeout = 2}});
  group.gradients().add(model.gradient);
  ElasticSampler sampler(samples, {.seed = 3}), again(samples, {.seed = 4});
  std::vector<std::int32_t> visits(samples);
  int epoch = 0;
  double total = 0;
  group.keep(model.weights).keep(epoch).keep(sampler).keep(again).keep(visits).keep(total);
  group.checkpoints();
  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      while (!sampler.done()) {
        const auto before = sampler.processed();
        const auto mine = sampler.next(24, group.rank(), group.size());
        for (auto place = before; place < sampler.processed(); ++place) ++visits[sampler.sample(place)];
        model.backward(mine);
        fate(group, context, epoch, static_cast<int>(before / 24));
        group.gradients().reduce(static_cast<std::int64_t>(mine.size()));
        model.step();
        group.commit();
      }
      sampler.next_epoch();
    });
    fate(group, context, epoch, 50);
    co_yield report("sum", 0.0, "once", 1.0, "epoch", static_cast<double>(epoch));
    if (epoch % 2 == 1)
      group.run([&] {
        while (!again.done()) {
          const auto before = again.processed();
          const auto mine = again.next(80, group.rank(), group.size());
          const auto sum = group.communicator().all_reduce(static_cast<std::int64_t>(mine.size()), Reduction::sum);
          fate(group, context, epoch, 10 + static_cast<int>(before / 80));
          total += static_cast<double>(sum) * model.weights[0];
          group.commit();
        }
        again.next_epoch();
      });
    double once = 1;
    for (const auto count : visits) once = count == epoch + 1 ? once : 0;
    double sum = total;
    for (std::size_t i = 0; i < 5; ++i) sum += model.weights[i] * static_cast<double>(i + 1);
    co_yield report("sum", sum, "once", once, "epoch", static_cast<double>(epoch));
  }
}

/// Kills a worker at a quarter of the batches, each time but once: what was done again is not killed again. All workers
/// of a training, on all hosts, have `folder`.
struct KilledAtRandom {
  unsigned seed = 0;  ///< 0: kills nobody
  std::filesystem::path folder = {};
  int signal = SIGKILL;
  double share = 0.25;  ///< of the batches
  void operator()(const ElasticState& group, Context&, int epoch, int batch) const {
    Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(batch)});
    if (seed == 0 || uniform01(rng) > share) return;
    const int victim = static_cast<int>(uniform01(rng) * group.size());
    const auto once = folder / std::to_string(epoch * 100 + batch);
    const int fd = group.rank() == victim ? ::open(once.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
    if (fd >= 0) ::raise(signal);
  }
};

}  // namespace hypertune::inline v0::test
