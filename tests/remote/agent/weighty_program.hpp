// Trials with checkpoints of some size, of which a step changes a tenth.
#pragma once

#include "support/executor_trials.hpp"

#include <hypertune/random.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

namespace hypertune::inline v0::test {

/// What trials do as their Plan says; their checkpoints have `bytes` more, of random numbers in ten parts, one of which
/// each step renews. They follow from the steps done, so that they need not be read again to go on.
struct WeightyTrainer : conformance::PlannedTrainer {
  inline static std::size_t bytes = 0;
  static constexpr int parts = 10;

  WeightyTrainer(const Plan& plan, Context& context)
      : conformance::PlannedTrainer(plan, context), seed(plan.seed), done(context.next_step()) {}
  std::optional<Report> step() {
    auto report = conformance::PlannedTrainer::step();
    if (report) ++done;
    return report;
  }
  void save(CheckpointWriter& out) const {
    conformance::PlannedTrainer::save(out);
    std::ofstream file(out.file("weights"), std::ios::binary);
    for (int part = 0; part < parts; ++part) {
      const int renewed = done - (done - part + parts) % parts;  // the latest step whose turn it was
      Rng rng = derived_rng(9, {static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(part),
                                static_cast<std::uint64_t>(renewed > 0 ? renewed : 0)});
      for (std::size_t i = 0; i < bytes / parts / sizeof(std::uint64_t); ++i) {
        const std::uint64_t word = rng();
        file.write(reinterpret_cast<const char*>(&word), sizeof word);
      }
    }
  }
  int seed, done;
};

/// "weighty 1000000"
inline std::shared_ptr<const Program> weighty_program(const std::string& name) {
  WeightyTrainer::bytes = std::stoull(name.substr(8));
  return make_class_program<Plan, WeightyTrainer>(&Plan::of, "value");
}

}  // namespace hypertune::inline v0::test
