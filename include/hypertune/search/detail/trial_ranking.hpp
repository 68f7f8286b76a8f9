// What a model-based searcher knows of each trial, and which of them are good.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// All trials observed, those with a result in order from the best to the worst: what meets the constraints before what
/// does not (the less it violates them the better), what ran to its end before what did not, more steps before fewer
/// (as BOHB and Optuna do: an early loss says less), the smaller loss. Failed trials come last. Several objectives are
/// told apart by best().
class TrialRanking {
 public:
  struct Entry {
    double violation = 0;
    std::int64_t steps = 0;  // `whole` when it ran to its end, `failed_` when it failed
    double loss = worst_loss;
    bool pending = true, judged = false;
    std::vector<double> losses{};       // with several objectives
    std::vector<double> constraints{};  // > 0 violated, NaN unknown
  };

  TrialRanking() = default;
  TrialRanking(std::size_t objectives, std::size_t constraints) : objectives_(objectives), constraints_(constraints) {}

  /// Takes in an observation: the trial's slot, and whether it is new.
  std::pair<std::size_t, bool> observe(const Observation& o);

  std::size_t size() const { return entries_.size(); }
  std::size_t judged() const { return order_.size(); }
  /// Trials with a finite loss that did not fail.
  std::size_t useful() const { return useful_; }
  const Entry& operator[](std::size_t slot) const { return entries_[slot]; }
  /// Slots of the trials with a result, the best first (of several objectives: by the first).
  std::span<const std::uint32_t> order() const { return order_; }
  /// Slots of the trials that have not ended, in the order of their start.
  std::span<const std::uint32_t> pending() const { return pending_; }
  /// Whether the entries differ in their losses alone, so that these can be compared.
  bool alike(std::size_t a, std::size_t b) const {
    return entries_[a].steps == entries_[b].steps && entries_[a].violation == entries_[b].violation;
  }

  /// The `count` best slots, best first. Several objectives: by nondomination rank, and by greedy selection of the
  /// largest hypervolume within the last rank that fits (MOTPE: Ozaki et al. 2022).
  std::vector<std::uint32_t> best(std::size_t count) const;

 private:
  static constexpr std::int64_t whole = std::numeric_limits<std::int64_t>::max(), failed = -1;
  static constexpr std::size_t elite_size = 160;  // of several objectives: the best so many are told apart

  bool before(std::size_t a, std::size_t b) const;
  bool is_useful(const Entry& entry) const;
  void enter(std::uint32_t slot);
  void forget(std::uint32_t slot);
  std::vector<std::uint32_t> best_of(std::vector<std::uint32_t> slots, std::size_t count, bool by_volume) const;

  std::size_t objectives_ = 1, constraints_ = 0, useful_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> order_, pending_;
  std::vector<std::uint32_t> elite_;  // of several objectives: at least the best ones
  std::unordered_map<TrialId, std::uint32_t> slots_;
};

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/trial_ranking.hpp>
#endif
