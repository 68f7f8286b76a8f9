// A journal of many trials, written as fast as the disk takes it.
#pragma once

#include <hypertune/record/detail/journal_writer.hpp>
#include <hypertune/record/record.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace benchmark {

struct Shape {
  std::int64_t trials = 100'000;
  int reports = 27;
  int slots = 64;  ///< at once
  int metrics = 1;
};

/// Trials one after another on so many slots, their reports interleaved.
inline void generate(const std::filesystem::path& directory, const Shape& shape) {
  namespace ht = hypertune;
  namespace record = hypertune::record;
  std::filesystem::create_directories(directory);
  ht::detail::JournalWriter writer(directory, false, 4096);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<ht::Record> batch;
  std::int64_t sequence = 0;
  double now = 1.7e9;
  const auto put = [&](record::Any what) {
    batch.push_back({++sequence, now, std::move(what)});
    if (batch.size() == 20'000) {
      writer.commit(batch);
      batch.clear();
    }
  };
  put(record::ExperimentStarted{.name = "large",
                                .objectives = {ht::maximize("accuracy")},
                                .space = "lr: {log_uniform: [0.0001, 0.1]}\nhidden: {log_int: [16, 512]}\n"
                                         "optimizer: {choice: [sgd, adam, lion]}\n",
                                .searcher = "random",
                                .scheduler = "asha",
                                .executor = "processes",
                                .samples = shape.trials,
                                .seed = 7});
  static constexpr const char* optimizers[] = {"sgd", "adam", "lion"};
  struct Slot {
    std::int64_t trial = -1;
    int step = 0;
    double peak = 0;
  };
  std::vector<Slot> slots(static_cast<std::size_t>(shape.slots));
  std::int64_t created = 0;
  bool any = true;
  while (any) {
    any = false;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      auto& slot = slots[s];
      now += 0.001;
      if (slot.trial < 0) {
        if (created == shape.trials) continue;
        slot = {.trial = created++};
        const double lr = std::pow(10, -4 + 3 * unit(random));
        const auto hidden = static_cast<std::int64_t>(16 * std::pow(32, unit(random)));
        const auto optimizer = static_cast<std::size_t>(unit(random) * 3);
        slot.peak =
            1 - std::pow(std::log10(lr) + 2.5, 2) / 10 - 0.02 * static_cast<double>(optimizer) - 0.01 * unit(random);
        put(record::TrialCreated{slot.trial,
                                 {std::log(lr), std::log(static_cast<double>(hidden)), static_cast<double>(optimizer)},
                                 {{"lr", lr}, {"hidden", hidden}, {"optimizer", std::string(optimizers[optimizer])}}});
        put(record::TrialStarted{slot.trial, 0, 0, "host" + std::to_string(s % 8), {static_cast<int>(s / 8)}, {}});
      }
      any = true;
      ht::Metrics metrics;
      const double value = slot.peak * (1 - std::pow(0.8, slot.step + 1)) + 0.005 * unit(random);
      metrics.emplace_back("accuracy", value);
      for (int m = 1; m < shape.metrics; ++m) metrics.emplace_back("metric_" + std::to_string(m), value * m);
      put(record::TrialReported{slot.trial, 0, slot.step, std::move(metrics)});
      if (++slot.step < shape.reports) continue;
      put(record::TrialEnded{slot.trial, ht::TrialState::completed, std::nullopt, true});
      slot.trial = -1;
    }
  }
  put(record::ExperimentEnded{});
  writer.commit(batch);
}

}  // namespace benchmark
