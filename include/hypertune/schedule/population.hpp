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

/// One trial of a population. `loss`, `recent` and `mark` are of its last pause, where its state was saved.
struct PopulationMember {
  Point point;
  int steps = 0;
  int saved = 0;         // steps done at its last pause: who takes it over goes on from there
  int mark = 0;          // whole intervals done
  bool rebased = false;  // has not reported since it took over another one's state
  bool paused = false;
  bool scored = false;   // has paused with what it is now: it can be judged, and can be a donor
  bool decided = false;  // has taken over at this pause
  double loss = worst_loss;
  double before = worst_loss;  // of the pause before that, in its own past or its donor's
  std::uint64_t pauses = 0;
  std::vector<double> recent = {};  // losses of its last reports, the newest last
};

template <class>
class BasicPopulation;
using Population = BasicPopulation<void>;

/// Members pause at every multiple of the interval. The one with the fewest steps goes on first, so that with fewer
/// slots than members all advance in turn.
template <class Lazy>
class BasicPopulation {
 public:
  using Members = std::map<TrialId, PopulationMember>;

  void create(TrialId trial, const Point& point) { members_[trial].point = point; }
  void end(TrialId trial) {
    const auto found = members_.find(trial);
    if (found == members_.end()) return;
    waiting_.erase({found->second.steps, trial});
    members_.erase(found);
  }

  /// Takes a report; true if the trial pauses now.
  bool report(TrialId trial, int steps, double loss, int interval, std::size_t window) {
    PopulationMember& member = members_[trial];
    if (member.paused) waiting_.erase({member.steps, trial});
    if (std::exchange(member.rebased, false)) member.mark = (steps - 1) / interval;
    member.steps = steps;
    member.recent.push_back(loss);
    if (member.recent.size() > window) member.recent.erase(member.recent.begin());
    if (steps / interval <= member.mark && !member.paused) return false;
    member.mark = steps / interval;
    member.before = member.loss;
    member.loss = loss;
    member.saved = steps;
    member.scored = false;
    member.decided = false;
    ++member.pauses;
    return true;
  }
  /// The trial has left its slot, and its state is saved.
  void pause(TrialId trial) {
    const auto found = members_.find(trial);
    if (found == members_.end()) return;
    found->second.paused = found->second.scored = true;
    waiting_.insert({found->second.steps, trial});
  }
  void exploit(TrialId trial, TrialId donor, const Point& point) {
    PopulationMember& member = members_[trial];
    const auto found = members_.find(donor);
    if (member.paused) waiting_.erase({member.steps, trial});
    if (found != members_.end()) {
      member.steps = member.saved = found->second.saved;
      member.loss = found->second.loss;
    }
    member.point = point;
    member.rebased = true;
    member.scored = false;
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

  /// The decision on a report that report() has seen. A trial that has done all its `max` steps is not over yet, but
  /// nothing can be trained any more from its state.
  Decision decide(const Progress& progress, bool pauses, int max) {
    if (progress.steps >= max) {
      members_[progress.trial].scored = false;
      return Decision::complete;
    }
    return pauses ? Decision::pause : Decision::go_on;
  }

  /// What to do with a free slot: fill a population of `wanted` members (0: all there are), then let the paused ones go
  /// on in turn. `turn(trial, member)` says how, where that is not decided yet.
  template <class Turn>
  Choice choose(const Pool& pool, int wanted, const Turn& turn) const {
    if (pool.more_trials && (wanted == 0 || size() < static_cast<std::size_t>(wanted))) return Choice::start_new();
    const auto trial = next();
    if (!trial) return Choice::wait();
    const auto& member = members_.at(*trial);
    return member.decided ? Choice::resume(*trial) : turn(*trial, member);
  }

  /// The paused member with the fewest steps.
  std::optional<TrialId> next() const {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->second);
  }
  const Members& members() const { return members_; }
  const PopulationMember& operator[](TrialId trial) const { return members_.at(trial); }
  std::size_t size() const { return members_.size(); }

  /// Members that can be judged, the best first.
  std::vector<RungEntry> ranking() const {
    std::vector<RungEntry> ranked;
    for (const auto& [trial, member] : members_)
      if (member.scored) ranked.push_back({member.loss, trial});
    std::sort(ranked.begin(), ranked.end());
    return ranked;
  }

  /// Truncation selection: a member of the worst part takes over one of the best part, chosen by chance; nobody one
  /// without a finite loss. Among equals the older are the better: they are never all left alone, or a population that
  /// stands still would explore no more.
  std::optional<TrialId> truncation(TrialId trial, double quantile, Rng& rng) const {
    const auto ranked = ranking();
    if (ranked.size() < 2) return std::nullopt;
    const auto part = std::clamp<std::size_t>(static_cast<std::size_t>(quantile * static_cast<double>(ranked.size())),
                                              1, ranked.size() / 2);
    const PopulationMember& member = (*this)[trial];
    const RungEntry own{member.loss, trial};
    if (!member.scored || own < ranked[ranked.size() - part]) return std::nullopt;
    std::size_t donors = 0;
    while (donors < part && ranked[donors].loss != worst_loss) ++donors;
    if (donors == 0) return std::nullopt;
    const auto at = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(donors));
    return ranked[std::min(at, donors - 1)].trial;
  }

 private:
  Members members_;
  std::set<std::pair<int, TrialId>> waiting_;  // paused, by steps
};

}  // namespace hypertune::detail
