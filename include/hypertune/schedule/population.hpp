// Population: the members of population based training, and which of them is next.
#pragma once

#include <hypertune/schedule/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hypertune::detail {

/// One trial of a population. `loss` is that of its last pause.
struct PopulationMember {
  Point point;
  int steps = 0;
  int mark = 0;      // whole intervals done
  int previous = 0;  // … at the pause before, in its own past or its donor's
  bool paused = false;
  bool decided = false;  // has taken over at this pause
  double loss = worst_loss;
  double before = worst_loss;  // of the pause before that, in its own past or its donor's
  std::uint64_t pauses = 0;
  std::vector<double> recent = {};  // losses of its last reports, the newest last
};

/// What a member was when it paused after so many steps, where its state was saved.
struct PopulationArrival {
  Point point;
  int steps = 0;
  double loss = worst_loss;
  std::vector<double> recent = {};
};

/// Members pause at every multiple of the interval, and are compared with what the others were at that multiple,
/// however far those have come since: with fewer slots than members they take turns, and one that has done more steps
/// is not the better for it. The one with the fewest steps goes on first, so that all advance evenly.
class Population {
 public:
  using Members = std::map<TrialId, PopulationMember>;

  void create(TrialId trial, const Point& point) {
    members_[trial].point = point;
    ++at_mark_[0];
  }
  void end(TrialId trial) {
    const auto found = members_.find(trial);
    if (found == members_.end()) return;
    waiting_.erase({found->second.steps, trial});
    leave_mark(found->second.mark);
    members_.erase(found);
    for (auto& [mark, round] : rounds_) round.erase(trial);
    forget_rounds();
  }

  /// Takes a report; true if the trial pauses now.
  bool report(TrialId trial, int steps, double loss, int interval, std::size_t window) {
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
  /// The trial has left its slot, and its state is saved.
  void pause(TrialId trial) {
    const auto found = members_.find(trial);
    if (found == members_.end()) return;
    PopulationMember& member = found->second;
    member.paused = true;
    waiting_.insert({member.steps, trial});
    rounds_[member.mark].add(
        trial, {.point = member.point, .steps = member.steps, .loss = member.loss, .recent = member.recent});
  }
  /// The trial goes on with `point` from what the donor saved after `steps` steps.
  void exploit(TrialId trial, TrialId donor, const Point& point, int steps, int interval) {
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
  void resume(TrialId trial) {
    const auto found = members_.find(trial);
    if (found == members_.end()) return;
    found->second.paused = false;
    waiting_.erase({found->second.steps, trial});
  }

  /// The decision on a report that report() has seen.
  static Decision decide(const Progress& progress, bool pauses, int max) {
    if (progress.steps >= max) return Decision::complete;
    return pauses ? Decision::pause : Decision::go_on;
  }

  /// What to do with a free slot: fill a population of `wanted` members (0: all there are), then let the paused ones go
  /// on in turn, as soon as they can be judged. `turn(trial, member)` says how, where that is not decided yet.
  template <class Turn>
  Choice choose(const Pool& pool, int wanted, bool synchronous, const Turn& turn) const {
    if (pool.more_trials && (wanted == 0 || size() < static_cast<std::size_t>(wanted))) return Choice::start_new();
    for (const auto& [steps, trial] : waiting_) {
      const auto& member = members_.at(trial);
      if (member.decided) return Choice::resume(trial);
      if (can_be_judged(member, synchronous)) return turn(trial, member);
    }
    return Choice::wait();
  }

  const Members& members() const { return members_; }
  const PopulationMember& operator[](TrialId trial) const { return members_.at(trial); }
  std::size_t size() const { return members_.size(); }

  /// What the trial was when it paused at that multiple of the interval; nullptr: it has not, or nobody needs it any
  /// more.
  const PopulationArrival* find(TrialId trial, int mark) const {
    const auto round = rounds_.find(mark);
    if (round == rounds_.end()) return nullptr;
    const auto found = round->second.arrivals.find(trial);
    return found == round->second.arrivals.end() ? nullptr : &found->second;
  }
  /// All that have paused where the trial is paused, the best first.
  std::vector<RungEntry> ranking(TrialId trial) const {
    const auto round = rounds_.find((*this)[trial].mark);
    return round == rounds_.end() ? std::vector<RungEntry>{} : round->second.ranked;
  }

  /// Truncation selection: a member of the worst part takes over one of the best part, chosen by chance; nobody one
  /// without a finite loss. Among equals the older are the better: they are never all left alone, or a population that
  /// stands still would explore no more.
  std::optional<TrialId> truncation(TrialId trial, double quantile, Rng& rng) const {
    const PopulationMember& member = (*this)[trial];
    const auto ranked = ranking(trial);
    if (ranked.size() < 2 || !held(member.mark, donors_of(quantile))) return std::nullopt;
    // Those that are about to come count as well: the first ones are judged as strictly as the last.
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

  /// Whether what the trial saved when it paused after `steps` steps may still be taken over, where the best part (1:
  /// anybody) are donors. Of the newest rounds these are, so that a member that is far behind keeps no more
  /// checkpoints than about one for each member.
  bool may_give(TrialId trial, int steps, double quantile, int interval) const {
    const int mark = steps / interval;
    const auto* arrival = find(trial, mark);
    if (arrival == nullptr || arrival->steps != steps || arrival->loss == worst_loss) return false;
    const std::size_t donors = donors_of(quantile);
    if (!held(mark, donors)) return false;
    const auto& ranked = rounds_.at(mark).ranked;
    const auto place = std::lower_bound(ranked.begin(), ranked.end(), RungEntry{arrival->loss, trial});
    return static_cast<std::size_t>(place - ranked.begin()) < donors;
  }
  /// Whether donors of that multiple of the interval are kept, where each has `donors` of them.
  bool held(int mark, std::size_t donors) const {
    return !rounds_.empty() && rounds_.rbegin()->first - mark <= static_cast<int>(size() / donors);
  }
  std::size_t donors_of(double quantile) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(quantile * static_cast<double>(size())));
  }

 private:
  struct Round {
    std::map<TrialId, PopulationArrival> arrivals;
    std::vector<RungEntry> ranked;  // the same, the best first

    void add(TrialId trial, PopulationArrival arrival) {
      erase(trial);
      const RungEntry entry{arrival.loss, trial};
      ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), entry), entry);
      arrivals.emplace(trial, std::move(arrival));
    }
    void erase(TrialId trial) {
      const auto found = arrivals.find(trial);
      if (found == arrivals.end()) return;
      const RungEntry entry{found->second.loss, trial};
      ranked.erase(std::lower_bound(ranked.begin(), ranked.end(), entry));
      arrivals.erase(found);
    }
  };

  /// Whether enough others have come to where the member is. Without `synchronous` those that are more than an interval
  /// behind are not waited for (they are slow, or have come later), nor the last quarter of the others.
  bool can_be_judged(const PopulationMember& member, bool synchronous) const {
    if (synchronous) return at_mark_.begin()->first >= member.mark;
    const auto round = rounds_.find(member.mark);
    return round == rounds_.end() || round->second.arrivals.size() >= 3 * close_behind(member);
  }
  /// How many are where the member was at its last pause, and so about to come to where it is.
  std::size_t close_behind(const PopulationMember& member) const {
    std::size_t count = 0;
    for (auto at = at_mark_.lower_bound(member.previous); at != at_mark_.end() && at->first < member.mark; ++at)
      count += at->second;
    return count;
  }
  void move_to(PopulationMember& member, int mark) {
    ++at_mark_[mark];
    leave_mark(std::exchange(member.mark, mark));
    forget_rounds();
  }
  void leave_mark(int mark) {
    if (--at_mark_.at(mark) == 0) at_mark_.erase(mark);
  }
  /// Nobody will come to what the slowest has left behind.
  void forget_rounds() {
    if (at_mark_.empty())
      rounds_.clear();
    else
      rounds_.erase(rounds_.begin(), rounds_.lower_bound(at_mark_.begin()->first));
  }

  Members members_;
  std::set<std::pair<int, TrialId>> waiting_;  // paused, by steps
  std::map<int, std::size_t> at_mark_;         // members by whole intervals done
  std::map<int, Round> rounds_;                // who has paused there, by whole intervals done
};

}  // namespace hypertune::detail
