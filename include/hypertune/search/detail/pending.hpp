// Running trials, and when a trial that may never end counts by its last report.
#pragma once

#include <hypertune/search/detail/fitness.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// The result of a trial: its genome and its fitness.
struct Individual {
  TrialId trial = -1;
  std::vector<double> genome{};
  Fitness fitness{};
};

/// The genomes of trials that have started and not ended. A trial that a scheduler pauses may never end: once
/// `patience` other trials have started since its last report, that report counts as its result.
class PendingTrials {
 public:
  /// Adds a trial. Calls `take(Individual)` for each trial that has waited too long.
  template <class Take>
  void start(TrialId trial, std::vector<double> genome, std::uint64_t patience, Take&& take) {
    trials_.insert_or_assign(trial, Trial{std::move(genome), {}, 0});
    ++started_;
    while (!reports_.empty() && reports_.front().first + patience < started_) {
      const auto [at, late] = reports_.front();
      reports_.pop_front();
      const auto found = trials_.find(late);
      if (found == trials_.end() || found->second.reported != at) continue;
      Individual individual{late, std::move(found->second.genome), std::move(*found->second.last)};
      trials_.erase(found);
      take(std::move(individual));
    }
  }
  void report(const Observation& o) {
    const auto found = trials_.find(o.trial);
    if (found == trials_.end()) return;
    found->second.last = Fitness(o);
    found->second.reported = started_;
    reports_.emplace_back(started_, o.trial);
  }
  std::optional<Individual> end(const Observation& o) {
    const auto found = trials_.find(o.trial);
    if (found == trials_.end()) return std::nullopt;
    Individual individual{o.trial, std::move(found->second.genome), Fitness(o)};
    trials_.erase(found);
    return individual;
  }
  const std::vector<double>* genome(TrialId trial) const {
    const auto found = trials_.find(trial);
    return found == trials_.end() ? nullptr : &found->second.genome;
  }
  std::uint64_t started() const { return started_; }

 private:
  struct Trial {
    std::vector<double> genome;
    std::optional<Fitness> last;
    std::uint64_t reported = 0;
  };
  std::unordered_map<TrialId, Trial> trials_;
  std::deque<std::pair<std::uint64_t, TrialId>> reports_;
  std::uint64_t started_ = 0;
};

}  // namespace hypertune::inline v0::detail
