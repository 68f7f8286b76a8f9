// SimulatedGroup: the workers of a simulated attempt, of which some train while others are starting.
#pragma once

#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/detail/group/group_machine.hpp>
#include <hypertune/execute/detail/growths.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// As with real workers, a generation goes on training until all workers of the next one are ready. The next one takes
/// over between two steps. If a worker that trains is lost, all of them halt and start together.
class SimulatedGroup {
 public:
  /// A group whose workers all have to start.
  SimulatedGroup() = default;
  /// A group whose workers train already.
  explicit SimulatedGroup(const Allocation& training) : machine_(training.generation, training.workers()) {}

  /// A group of which some workers were asked for while the others trained: the last generation that trained goes on
  /// until the next step.
  static SimulatedGroup joined(const Growths& growths, const Allocation& newest, Seconds startup) {
    const auto& training = growths.training(startup);
    Allocation before = newest;
    before.generation = training.generation;
    before.others.resize(static_cast<std::size_t>(training.workers) - 1);
    std::vector<int> from(static_cast<std::size_t>(newest.workers()), -1);
    std::iota(from.begin(), from.begin() + training.workers, 0);
    SimulatedGroup group(before);
    group.form({newest.generation, std::move(from)}, before, growths.ready(startup), growths.formed());
    return group;
  }

  std::uint32_t generation() const { return machine_.generation(); }
  int present() const { return machine_.present(); }
  bool trains() const { return machine_.running() || before_; }
  /// Whether the previous generation still trains, because the newest one is not ready or waits for the end of a step.
  bool changes() const { return before_.has_value(); }
  bool stands_ready(Seconds at) const {
    if (machine_.state() != GroupMachine::State::forming || formed_ > at) return false;
    return std::all_of(ready_.begin(), ready_.end(), [at](Seconds ready) { return ready <= at; });
  }
  /// The workers that do the steps.
  const Allocation& training(const Allocation& newest) const { return before_ ? before_->allocation : newest; }
  int trainer(int rank) const {
    return before_ ? before_->members.at(static_cast<std::size_t>(rank)) : machine_.member(rank);
  }
  std::vector<int> members_on(int host, const Allocation& newest) const {
    std::vector<int> members;
    for (int rank = 0; rank < newest.workers(); ++rank)
      if (newest[rank].host == host) members.push_back(machine_.member(rank));
    if (before_)
      for (int rank = 0; rank < before_->allocation.workers(); ++rank)
        if (before_->allocation[rank].host == host) members.push_back(trainer(rank));
    return members;
  }

  /// Asks for a new generation. Returns its ranks that were lost already; if there are any, it will not be formed.
  /// `was`: the allocation of the previous generation; `ready`: when each rank that starts now is ready.
  std::vector<int> form(group::Form next, const Allocation& was, const std::vector<Seconds>& ready, Seconds now) {
    if (machine_.running()) before_ = Before{was, members()};
    formed_ = now;
    set_ready(next.from, ready);
    group::Gone gone;
    std::vector<int> missing;
    for (const auto& action : machine_.resume(std::move(next))) {
      if (const auto* dismissed = std::get_if<group::Dismiss>(&action); dismissed && !trains(dismissed->member))
        gone.members.push_back(dismissed->member);
      if (const auto* broken = std::get_if<group::Broken>(&action)) missing = broken->ranks;
    }
    machine_.resume(gone);
    return missing;
  }

  /// The newest generation takes over: all its workers are ready, and workers without a place in it leave.
  void take_over() {
    group::Gone gone;
    if (before_)
      for (const int member : before_->members)
        if (machine_.rank(member) < 0) gone.members.push_back(member);
    halt();
    machine_.resume(gone);
    for (int rank = 0; rank < machine_.size() && !machine_.running(); ++rank)
      machine_.resume(group::Joined{machine_.member(rank), machine_.generation()});
  }

  struct Loss {
    bool halts = false;           ///< no worker trains any more
    bool for_good = false;        ///< no worker is left that has the trained state
    std::vector<int> ranks = {};  ///< lost ranks of the newest generation, which will not be formed; empty: it will be
  };
  /// These members are lost; some may have been gone before.
  Loss lose(const std::vector<int>& members) {
    Loss loss;
    if (before_) {
      const auto lost = std::count_if(before_->members.begin(), before_->members.end(), [&](int trainer) {
        return std::find(members.begin(), members.end(), trainer) != members.end();
      });
      loss.halts = lost > 0;
      loss.for_good = lost == std::ssize(before_->members);
    }
    for (const auto& action : machine_.resume(group::Gone{members}))
      if (const auto* broken = std::get_if<group::Broken>(&action)) loss.ranks = broken->ranks;
    loss.halts = loss.halts || (!before_ && !loss.ranks.empty());
    if (!loss.halts) return loss;  // only workers that were to join are lost: the others go on
    loss.for_good = loss.for_good || machine_.present() == 0;
    halt();
    return loss;
  }

 private:
  struct Before {
    Allocation allocation;
    std::vector<int> members;  // by rank
  };

  bool trains(int member) const {
    return before_ && std::find(before_->members.begin(), before_->members.end(), member) != before_->members.end();
  }
  std::vector<int> members() const {
    std::vector<int> members;
    for (int rank = 0; rank < machine_.size(); ++rank) members.push_back(machine_.member(rank));
    return members;
  }
  void set_ready(const std::vector<int>& from, const std::vector<Seconds>& ready) {
    const auto earlier = std::exchange(ready_, {});
    for (std::size_t rank = 0; rank < from.size() && before_; ++rank) {
      const int was = from[rank];
      const bool waited_for = was >= 0 && static_cast<std::size_t>(was) < earlier.size();
      ready_.push_back(was < 0 ? ready.at(rank) : waited_for ? earlier[static_cast<std::size_t>(was)] : 0);
    }
  }
  void halt() {
    before_.reset();
    ready_.clear();
  }

  GroupMachine machine_;
  std::optional<Before> before_;  // the generation that trains until the newest one does
  std::vector<Seconds> ready_;    // with before_: when each rank of the newest generation is ready
  Seconds formed_ = 0;            // when the newest generation was asked for
};

}  // namespace hypertune::inline v0
