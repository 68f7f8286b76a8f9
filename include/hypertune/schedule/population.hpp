// Population: the members of population based training, and which of them is next.
#pragma once

#include <hypertune/detail/linkage.hpp>
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

namespace hypertune::inline v0::detail {

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
  void end(TrialId trial);

  /// Takes a report; true if the trial pauses now.
  bool report(TrialId trial, int steps, double loss, int interval, std::size_t window);
  /// The trial has left its slot, and its state is saved.
  void pause(TrialId trial);
  /// The trial goes on with `point` from what the donor saved after `steps` steps.
  void exploit(TrialId trial, TrialId donor, const Point& point, int steps, int interval);
  void resume(TrialId trial);

  /// The decision on a report that report() has seen.
  static Decision decide(const Progress& progress, bool pauses, int max) {
    if (progress.steps >= max) return Decision::complete;
    return pauses ? Decision::pause : Decision::proceed;
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
  const PopulationArrival* find(TrialId trial, int mark) const;
  /// All that have paused where the trial is paused, the best first.
  std::vector<RungEntry> ranking(TrialId trial) const {
    const auto round = rounds_.find((*this)[trial].mark);
    return round == rounds_.end() ? std::vector<RungEntry>{} : round->second.ranked;
  }

  /// Truncation selection: a member of the worst part takes over one of the best part, chosen by chance; nobody one
  /// without a finite loss. Among equals the older are the better: they are never all left alone, or a population that
  /// stands still would explore no more.
  std::optional<TrialId> truncation(TrialId trial, double quantile, Rng& rng) const;

  /// Whether what the trial saved when it paused after `steps` steps may still be taken over, where the best part (1:
  /// anybody) are donors. Of the newest rounds these are, so that a member that is far behind keeps no more
  /// checkpoints than about one for each member.
  bool may_give(TrialId trial, int steps, double quantile, int interval) const;
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

    void add(TrialId trial, PopulationArrival arrival);
    void erase(TrialId trial);
  };

  /// Whether enough others have come to where the member is. Without `synchronous` those that are more than an interval
  /// behind are not waited for (they are slow, or have come later), nor the last quarter of the others.
  bool can_be_judged(const PopulationMember& member, bool synchronous) const;
  /// How many are where the member was at its last pause, and so about to come to where it is.
  std::size_t close_behind(const PopulationMember& member) const;
  void move_to(PopulationMember& member, int mark);
  void leave_mark(int mark) {
    if (--at_mark_.at(mark) == 0) at_mark_.erase(mark);
  }
  /// Nobody will come to what the slowest has left behind.
  void forget_rounds();

  Members members_;
  std::set<std::pair<int, TrialId>> waiting_;  // paused, by steps
  std::map<int, std::size_t> at_mark_;         // members by whole intervals done
  std::map<int, Round> rounds_;                // who has paused there, by whole intervals done
};

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/schedule/impl/population.hpp>
#endif
