// Population: the members of population based training, and which of them continues next.
#pragma once

#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// One trial of a population. `loss` is its loss at its last pause.
struct PopulationMember {
  Point point;
  int steps = 0;
  int mark = 0;      // whole intervals done
  int previous = 0;  // … at the pause before, of itself or of its donor
  bool paused = false;
  bool decided = false;  // has exploited at this pause
  double loss = worst_loss;
  double before = worst_loss;  // at the pause before, of itself or of its donor
  std::uint64_t pauses = 0;
  std::vector<double> recent = {};  // losses of its last reports, the newest last
};

/// What a member was when it paused, and its state was saved, after some number of steps.
struct PopulationArrival {
  Point point;
  int steps = 0;
  double loss = worst_loss;
  std::vector<double> recent = {};
};

/// Members pause at every multiple of the interval. A member is compared with what the others were at the same
/// multiple, however far they have trained since: with fewer slots than members they take turns, and having done more
/// steps is no advantage. The member with the fewest steps continues first, so that all advance evenly.
class Population {
 public:
  using Members = std::map<TrialId, PopulationMember>;

  void create(TrialId trial, const Point& point) {
    members_[trial].point = point;
    ++at_mark_[0];
  }
  void end(TrialId trial);

  /// Takes a report. True if the trial pauses now.
  bool report(TrialId trial, int steps, double loss, int interval, std::size_t window);
  /// The trial has left its slot and its state is saved.
  void pause(TrialId trial);
  /// The trial continues with `point`, from the state that the donor saved after `steps` steps.
  void exploit(TrialId trial, TrialId donor, const Point& point, int steps, int interval);
  void resume(TrialId trial);

  /// The decision on a report. `pauses` is the result of report().
  static Decision decide(const Progress& progress, bool pauses, int max) {
    if (progress.steps >= max) return Decision::complete;
    return pauses ? Decision::pause : Decision::proceed;
  }

  /// What to do with a free slot: first fill a population of `wanted` members (0: all trials), then resume the paused
  /// members in turn, as soon as they can be compared. `turn(trial, member)` makes the choice for a member that has not
  /// been decided yet.
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

  /// What the trial was when it paused at that multiple of the interval; nullptr if it has not, or if that is no longer
  /// kept.
  const PopulationArrival* find(TrialId trial, int mark) const;
  /// All trials that have paused at the multiple at which this trial is paused, the best first.
  std::vector<RungEntry> ranking(TrialId trial) const {
    const auto round = rounds_.find((*this)[trial].mark);
    return round == rounds_.end() ? std::vector<RungEntry>{} : round->second.ranked;
  }

  /// Truncation selection: the donor of a member of the worst part, a random member of the best part with a finite
  /// loss. nullopt: the member continues as it is. Among equal losses the older trial is better, so that a population
  /// in which all losses are equal still explores.
  std::optional<TrialId> truncation(TrialId trial, double quantile, Rng& rng) const;

  /// Whether the state that the trial saved when it paused after `steps` steps may still be taken over. Donors are the
  /// best `quantile` part of a round (1: anyone), in the newest rounds only, so that a member that is far behind causes
  /// no more checkpoints to be kept than about one per member.
  bool may_give(TrialId trial, int steps, double quantile, int interval) const;
  /// Whether the donors of that multiple of the interval are kept, if each multiple has `donors` of them.
  bool held(int mark, std::size_t donors) const {
    return !rounds_.empty() && rounds_.rbegin()->first - mark <= static_cast<int>(size() / donors);
  }
  std::size_t donors_of(double quantile) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(quantile * static_cast<double>(size())));
  }

 private:
  struct Round {
    std::map<TrialId, PopulationArrival> arrivals;
    std::vector<RungEntry> ranked;  // all arrivals, the best first

    void add(TrialId trial, PopulationArrival arrival);
    void erase(TrialId trial);
  };

  /// Whether enough others have reached the member's mark. Without `synchronous` it does not wait for members that are
  /// more than an interval behind (they are slow or started later), nor for the last quarter of the others.
  bool can_be_judged(const PopulationMember& member, bool synchronous) const;
  /// The number of members that have reached the member's previous mark, but not yet its present one.
  std::size_t close_behind(const PopulationMember& member) const;
  void move_to(PopulationMember& member, int mark);
  void leave_mark(int mark) {
    if (--at_mark_.at(mark) == 0) at_mark_.erase(mark);
  }
  /// Drops the rounds before the slowest member: no member will arrive there any more.
  void forget_rounds();

  Members members_;
  std::set<std::pair<int, TrialId>> waiting_;  // paused, by steps
  std::map<int, std::size_t> at_mark_;         // number of members by whole intervals done
  std::map<int, Round> rounds_;                // the pauses, by whole intervals done
};

}  // namespace hypertune::inline v0::detail
