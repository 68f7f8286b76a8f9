// Population: definitions.
#pragma once

#include <hypertune/schedule/detail/population.hpp>

namespace hypertune::inline v0::detail {

void Population::end(TrialId trial) {
  const auto found = members_.find(trial);
  if (found == members_.end()) return;
  waiting_.erase({found->second.steps, trial});
  leave_mark(found->second.mark);
  members_.erase(found);
  for (auto& [mark, round] : rounds_) round.erase(trial);
  forget_rounds();
}

bool Population::report(TrialId trial, int steps, double loss, int interval, std::size_t window) {
  const auto [found, is_new] = members_.try_emplace(trial);
  if (is_new) ++at_mark_[0];
  PopulationMember& member = found->second;
  if (member.paused) waiting_.erase({member.steps, trial});
  member.steps = steps;
  member.recent.push_back(loss);
  if (member.recent.size() > window) member.recent.erase(member.recent.begin());
  if (steps / interval <= member.mark && !member.paused) return false;
  member.previous = member.mark;
  move_to(member, steps / interval);
  member.before = member.loss;
  member.loss = loss;
  member.decided = false;
  ++member.pauses;
  return true;
}

void Population::pause(TrialId trial) {
  const auto found = members_.find(trial);
  if (found == members_.end()) return;
  PopulationMember& member = found->second;
  member.paused = true;
  waiting_.insert({member.steps, trial});
  rounds_[member.mark].add(
      trial, {.point = member.point, .steps = member.steps, .loss = member.loss, .recent = member.recent});
}

void Population::exploit(TrialId trial, TrialId donor, const Point& point, int steps, int interval) {
  PopulationMember& member = members_[trial];
  if (member.paused) waiting_.erase({member.steps, trial});
  member.steps = steps;
  const auto* arrival = find(donor, steps / interval);
  member.loss = arrival != nullptr ? arrival->loss : worst_loss;
  move_to(member, steps / interval);
  member.point = point;
  member.decided = true;
  member.recent.clear();
  if (member.paused) waiting_.insert({member.steps, trial});
}

void Population::resume(TrialId trial) {
  const auto found = members_.find(trial);
  if (found == members_.end()) return;
  found->second.paused = false;
  waiting_.erase({found->second.steps, trial});
}

const PopulationArrival* Population::find(TrialId trial, int mark) const {
  const auto round = rounds_.find(mark);
  if (round == rounds_.end()) return nullptr;
  const auto found = round->second.arrivals.find(trial);
  return found == round->second.arrivals.end() ? nullptr : &found->second;
}

std::optional<TrialId> Population::truncation(TrialId trial, double quantile, Rng& rng) const {
  const PopulationMember& member = (*this)[trial];
  const auto ranked = ranking(trial);
  if (ranked.size() < 2 || !held(member.mark, donors_of(quantile))) return std::nullopt;
  // Members that are about to arrive count as well, so that early members are judged as strictly as late ones.
  const auto part = std::clamp<std::size_t>(
      static_cast<std::size_t>(quantile * static_cast<double>(ranked.size() + close_behind(member))), 1,
      ranked.size() / 2);
  const auto* own = find(trial, member.mark);
  if (own == nullptr || RungEntry{own->loss, trial} < ranked[ranked.size() - part]) return std::nullopt;
  std::size_t donors = 0;
  while (donors < part && ranked[donors].loss != worst_loss) ++donors;
  if (donors == 0) return std::nullopt;
  const auto at = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(donors));
  return ranked[std::min(at, donors - 1)].trial;
}

bool Population::may_give(TrialId trial, int steps, double quantile, int interval) const {
  const int mark = steps / interval;
  const auto* arrival = find(trial, mark);
  if (arrival == nullptr || arrival->steps != steps || arrival->loss == worst_loss) return false;
  const std::size_t donors = donors_of(quantile);
  if (!held(mark, donors)) return false;
  const auto& ranked = rounds_.at(mark).ranked;
  const auto place = std::lower_bound(ranked.begin(), ranked.end(), RungEntry{arrival->loss, trial});
  return static_cast<std::size_t>(place - ranked.begin()) < donors;
}

void Population::Round::add(TrialId trial, PopulationArrival arrival) {
  erase(trial);
  const RungEntry entry{arrival.loss, trial};
  ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), entry), entry);
  arrivals.emplace(trial, std::move(arrival));
}

void Population::Round::erase(TrialId trial) {
  const auto found = arrivals.find(trial);
  if (found == arrivals.end()) return;
  const RungEntry entry{found->second.loss, trial};
  ranked.erase(std::lower_bound(ranked.begin(), ranked.end(), entry));
  arrivals.erase(found);
}

bool Population::can_be_judged(const PopulationMember& member, bool synchronous) const {
  if (synchronous) return at_mark_.begin()->first >= member.mark;
  const auto round = rounds_.find(member.mark);
  return round == rounds_.end() || round->second.arrivals.size() >= 3 * close_behind(member);
}

std::size_t Population::close_behind(const PopulationMember& member) const {
  std::size_t count = 0;
  for (auto at = at_mark_.lower_bound(member.previous); at != at_mark_.end() && at->first < member.mark; ++at)
    count += at->second;
  return count;
}

void Population::move_to(PopulationMember& member, int mark) {
  ++at_mark_[mark];
  leave_mark(std::exchange(member.mark, mark));
  forget_rounds();
}

void Population::forget_rounds() {
  if (at_mark_.empty())
    rounds_.clear();
  else
    rounds_.erase(rounds_.begin(), rounds_.lower_bound(at_mark_.begin()->first));
}

}  // namespace hypertune::inline v0::detail
