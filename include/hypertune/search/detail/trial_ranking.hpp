// What a model-based searcher keeps of each trial, and which trials are good.
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

/// All observed trials; those with a result are ordered from the best to the worst. Trials that meet the constraints
/// come first, then the others by violation; then complete trials before incomplete ones, more steps before fewer (as
/// in BOHB and Optuna: an early loss says less), then the smaller loss. Failed trials come last. With several
/// objectives this order uses the first one; best() uses all.
class TrialRanking {
 public:
  struct Entry {
    double violation = 0;
    std::int64_t steps = 0;  // `whole` if it completed, `failed` if it failed
    double loss = worst_loss;
    bool pending = true, judged = false;
    std::vector<double> losses{};       // with several objectives
    std::vector<double> constraints{};  // > 0: violated; NaN: unknown
  };

  TrialRanking() = default;
  TrialRanking(std::size_t objectives, std::size_t constraints) : objectives_(objectives), constraints_(constraints) {}

  /// Adds an observation. Returns the trial's slot, and whether the trial is new.
  std::pair<std::size_t, bool> observe(const Observation& o);

  std::size_t size() const { return entries_.size(); }
  std::size_t judged() const { return order_.size(); }
  /// Trials with a finite loss that did not fail.
  std::size_t useful() const { return useful_; }
  const Entry& operator[](std::size_t slot) const { return entries_[slot]; }
  /// Slots of the trials with a result, the best first (with several objectives: by the first).
  std::span<const std::uint32_t> order() const { return order_; }
  /// Slots of the trials that have not ended, in the order of their starts.
  std::span<const std::uint32_t> pending() const { return pending_; }
  /// Whether two entries differ only in their losses, so that these can be compared.
  bool alike(std::size_t a, std::size_t b) const {
    return entries_[a].steps == entries_[b].steps && entries_[a].violation == entries_[b].violation;
  }

  /// The `count` best slots, best first. With several objectives: by nondomination rank, and within the last rank that
  /// fits by greedy selection of the largest hypervolume (MOTPE: Ozaki et al. 2022).
  std::vector<std::uint32_t> best(std::size_t count) const;

 private:
  static constexpr std::int64_t whole = std::numeric_limits<std::int64_t>::max(), failed = -1;
  static constexpr std::size_t elite_size = 160;  // with several objectives: the number of best trials kept in order

  bool before(std::size_t a, std::size_t b) const;
  bool is_useful(const Entry& entry) const;
  void enter(std::uint32_t slot);
  void forget(std::uint32_t slot);
  std::vector<std::uint32_t> best_of(std::vector<std::uint32_t> slots, std::size_t count, bool by_volume) const;

  std::size_t objectives_ = 1, constraints_ = 0, useful_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> order_, pending_;
  std::vector<std::uint32_t> elite_;  // with several objectives: contains at least the best ones
  std::unordered_map<TrialId, std::uint32_t> slots_;
};

}  // namespace hypertune::inline v0::detail
