// Growths: definitions.
#pragma once

#include <hypertune/execute/detail/growths.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

void Growths::resize(const Stage& before, const Stage& next) {
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

void Growths::lose(const Stage& before, const std::vector<int>& ranks, const Stage& next, Seconds startup) {
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

bool Growths::complete(Seconds last, Seconds startup) const {
  return stages_.empty() || stages_.back().ready(startup) <= last;
}

std::vector<Seconds> Growths::ready(Seconds startup) const {
  std::vector<Seconds> ready(static_cast<std::size_t>(stages_.front().workers), 0);
  for (const Stage& stage : stages_)
    while (static_cast<int>(ready.size()) < stage.workers) ready.push_back(stage.asked + startup);
  return ready;
}

std::size_t Growths::index_of_training(Seconds startup) const {
  std::size_t stage = stages_.size() - 2;
  while (stage > 0 && stages_[stage].last < stages_[stage].ready(startup)) --stage;
  return stage;
}

Seconds Growths::formed() const { return stages_.back().formed; }

const Growths::Stage& Growths::training(Seconds startup) const { return stages_[index_of_training(startup)]; }

}  // namespace hypertune::inline v0
