// Growths: determines which generation of an attempt trains while further workers are starting.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The generations of an attempt since it began or lost a worker, for as long as workers have joined it since. The
/// workers that train go on until the new ones are ready, and let them join after the next report. So the records alone
/// do not tell which generation trains: that also depends on the startup time of workers, which the executor knows.
class Growths {
 public:
  struct Stage {
    std::uint32_t generation = 0;
    int workers = 1;
    Seconds asked = 0;   ///< when the last of its workers was asked for
    Seconds last = 0;    ///< last report before the next generation was asked for: this one trained if ready by then
    Seconds formed = 0;  ///< when this generation was asked for: it cannot train before the next report

    Seconds ready(Seconds startup) const { return std::max(asked + startup, formed); }
  };

  bool empty() const { return stages_.empty(); }
  void clear() { stages_.clear(); }

  /// Another number of workers is asked for, without a loss: the first ranks of `before` go on.
  void resize(const Stage& before, const Stage& next) {
    if (next.workers > before.workers) {
      if (stages_.empty()) stages_.push_back(before);
      stages_.back().last = before.last;
      stages_.push_back(next);
      return;
    }
    // The remaining workers were asked for with the smallest generation that contains them; those of the first one
    // train already.
    Seconds asked = 0;
    for (; !stages_.empty() && stages_.back().workers >= next.workers; stages_.pop_back()) asked = stages_.back().asked;
    if (!stages_.empty())
      stages_.push_back({.generation = next.generation, .workers = next.workers, .asked = asked, .formed = next.asked});
  }
  /// These ranks of `before` are lost, and `next` is asked for: the remaining workers, and perhaps others. If only
  /// workers that were to join are lost, those that train go on; otherwise the attempt has to form a generation anew.
  void lose(const Stage& before, const std::vector<int>& ranks, const Stage& next, Seconds startup) {
    if (!stages_.empty()) stages_.back().last = before.last;
    const bool all_train = stages_.empty() || stages_.back().ready(startup) <= before.last;
    const std::size_t trains = all_train ? 0 : index_of_training(startup);
    if (all_train || std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return rank < stages_[trains].workers; }))
      return clear();
    // None of the generations in between will train any more. They are kept because they tell when their remaining
    // workers are ready.
    std::vector<Stage> left{stages_[trains]};
    for (std::size_t i = trains + 1; i < stages_.size(); ++i) {
      Stage stage = stages_[i];
      stage.last = stage.formed = never;
      stage.workers -= static_cast<int>(
          std::count_if(ranks.begin(), ranks.end(), [&](int rank) { return rank < stages_[i].workers; }));
      if (stage.workers > left.back().workers) left.push_back(stage);
    }
    Stage newest{.generation = next.generation, .workers = next.workers, .asked = never, .formed = next.asked};
    if (next.workers > left.back().workers) {
      newest.asked = next.asked;
    } else if (left.size() > 1) {
      newest.asked = left.back().asked;
      left.pop_back();
    }
    left.push_back(newest);
    stages_ = std::move(left);
  }

  /// Whether the newest generation trains, if the attempt was last between two steps at `last`.
  bool complete(Seconds last, Seconds startup) const {
    return stages_.empty() || stages_.back().ready(startup) <= last;
  }
  /// The last generation before the newest one that has trained, if workers take `startup` seconds to start.
  const Stage& training(Seconds startup) const { return stages_[index_of_training(startup)]; }
  /// When the newest generation was asked for.
  Seconds formed() const { return stages_.back().formed; }
  /// When each rank of the newest generation is ready; 0 for workers of the first generation.
  std::vector<Seconds> ready(Seconds startup) const {
    std::vector<Seconds> ready(static_cast<std::size_t>(stages_.front().workers), 0);
    for (const Stage& stage : stages_)
      while (static_cast<int>(ready.size()) < stage.workers) ready.push_back(stage.asked + startup);
    return ready;
  }

 private:
  static constexpr Seconds never = -std::numeric_limits<Seconds>::infinity();

  std::size_t index_of_training(Seconds startup) const {
    std::size_t stage = stages_.size() - 2;
    while (stage > 0 && stages_[stage].last < stages_[stage].ready(startup)) --stage;
    return stage;
  }

  std::vector<Stage> stages_;  // oldest first, each with no fewer workers than the one before
};

}  // namespace hypertune::inline v0
