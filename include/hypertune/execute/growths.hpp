// Growths: which generation of an attempt trains while workers that are to join it begin.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0 {

/// The generations of an attempt since it began or lost a worker, as far as workers have joined it since. Those that
/// train go on until the others stand ready, and take them in after the next report. So what a record says is not
/// enough to tell which generation trains: that depends on how long workers take to begin, which the executor knows.
class Growths {
 public:
  struct Stage {
    std::uint32_t generation = 0;
    int workers = 1;
    Seconds asked = 0;  ///< when the last of its workers was asked for
    Seconds last = 0;   ///< the last report before another generation was asked for: it trains if it was ready by then
  };

  bool empty() const { return stages_.empty(); }
  void clear() { stages_.clear(); }

  /// Another number of workers is asked for, not because of a loss: the first ranks of `before` go on.
  void resize(const Stage& before, const Stage& next) {
    if (next.workers > before.workers) {
      if (stages_.empty()) stages_.push_back(before);
      stages_.back().last = before.last;
      stages_.push_back(next);
      return;
    }
    // Who is left was asked for when the smallest generation that has them was; all of the first one train already.
    Seconds asked = 0;
    for (; !stages_.empty() && stages_.back().workers >= next.workers; stages_.pop_back()) asked = stages_.back().asked;
    if (!stages_.empty()) stages_.push_back({.generation = next.generation, .workers = next.workers, .asked = asked});
  }

  /// Whether the newest generation does, where the attempt was between two steps last at `last`.
  bool complete(Seconds last, Seconds startup) const {
    return stages_.empty() || stages_.back().asked + startup <= last;
  }
  /// Of those before the newest one the one that has trained last, where workers take so long to begin.
  const Stage& training(Seconds startup) const {
    std::size_t stage = stages_.size() - 2;
    while (stage > 0 && stages_[stage].last < stages_[stage].asked + startup) --stage;
    return stages_[stage];
  }
  /// When each rank of the newest generation stands ready; 0: from the first.
  std::vector<Seconds> ready(Seconds startup) const {
    std::vector<Seconds> ready(static_cast<std::size_t>(stages_.front().workers), 0);
    for (const Stage& stage : stages_)
      while (static_cast<int>(ready.size()) < stage.workers) ready.push_back(stage.asked + startup);
    return ready;
  }

 private:
  std::vector<Stage> stages_;  // oldest first, each with more workers than the one before
};

}  // namespace hypertune::inline v0
