// GroupMachine: the workers of one attempt and their generations. No I/O.
#pragma once

#include <hypertune/detail/visit.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// The events of a group, and the actions for its executor. A member is one worker from its start to its end; its rank
/// may differ in each generation.
namespace group {

// ---- Events.

/// A new generation: for each rank the rank that its member had in the previous generation, or -1 for a new member.
struct Form {
  std::uint32_t generation = 0;
  std::vector<int> from;
};
/// The member is ready to train with its rank in this generation.
struct Joined {
  int member = 0;
  std::uint32_t generation = 0;
};
/// The members are gone, lost or dismissed; members that were lost together come together.
struct Gone {
  std::vector<int> members;
};
/// The attempt is to end.
struct End {};

using Event = std::variant<Form, Joined, Gone, End>;

// ---- Actions.

/// Start a member in the slot of this rank.
struct Start {
  int member = 0;
  int rank = 0;
};
/// The member is to leave its generation after its present step, and join the new one with this rank.
struct Join {
  int member = 0;
  int rank = 0;
};
/// The member's generation is broken: it is to abandon its present step and wait.
struct Halt {
  int member = 0;
};
/// End the member. Its slot is free once it is gone.
struct Dismiss {
  int member = 0;
};
/// All members are ready: they train.
struct Run {};
/// These ranks were lost, and the generation is over. The other members wait for a new generation, or for the end.
struct Broken {
  std::vector<int> ranks;
};
/// The generation runs, and members without a place in it are gone.
struct Complete {};
/// No member is left of an attempt that was to end.
struct Over {};

using Action = std::variant<Start, Join, Halt, Dismiss, Run, Broken, Complete, Over>;

}  // namespace group

/// Forms the workers of an attempt into generations. A generation trains once all its members are ready, and is over
/// when the first of them is lost. No member trains in two generations at once. Late events, of an earlier generation
/// or of a member that is gone, are ignored. Not thread-safe.
class GroupMachine {
 public:
  enum class State : std::uint8_t { empty, forming, running, broken, ending, over };

  GroupMachine() = default;
  /// A group that runs already; its members are numbered 0, 1, …, by rank.
  GroupMachine(std::uint32_t generation, int members) : state_(State::running), generation_(generation) {
    for (int rank = 0; rank < members; ++rank) add(rank);
    complete_ = true;
  }

  /// Processes an event; returns what to do, in this order.
  std::vector<group::Action> resume(const group::Event& event) {
    std::vector<group::Action> actions;
    detail::visit([&](const auto& e) { on(e, actions); }, event);
    return actions;
  }

  State state() const { return state_; }
  bool running() const { return state_ == State::running; }
  std::uint32_t generation() const { return generation_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// The number of members that are there, including dismissed ones.
  int present() const { return present_; }
  /// The member that has this rank in the present generation.
  int member(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  /// The rank of a member in the present generation; -1: it has none.
  int rank(int member) const { return members_.at(static_cast<std::size_t>(member)).rank; }
  /// Whether the member is ready for the present generation.
  bool ready(int member) const { return members_.at(static_cast<std::size_t>(member)).ready; }

 private:
  using Actions = std::vector<group::Action>;
  struct Member {
    int rank = -1;  // in the present generation; -1: dismissed
    bool there = true;
    bool ready = false;
  };

  int add(int rank) {
    const int id = static_cast<int>(members_.size());
    members_.push_back({.rank = rank});
    ranks_.push_back(id);
    ++present_;
    return id;
  }
  Member& at(int member) { return members_.at(static_cast<std::size_t>(member)); }

  void on(const group::Form& form, Actions& out) {
    if (state_ == State::ending || state_ == State::over || form.from.empty()) return;
    if (state_ != State::empty && form.generation <= generation_) return;
    generation_ = form.generation;
    state_ = State::forming;
    complete_ = false;
    ready_ = 0;
    const auto before = std::exchange(ranks_, {});
    for (const int id : before) at(id).rank = -1;
    std::vector<int> missing;
    for (int rank = 0; rank < static_cast<int>(form.from.size()); ++rank) {
      const int from = form.from[static_cast<std::size_t>(rank)];
      const int id = from < 0 ? add(rank) : before.at(static_cast<std::size_t>(from));
      if (from < 0) {
        out.emplace_back(group::Start{id, rank});
        continue;
      }
      ranks_.push_back(id);
      Member& member = at(id);
      member.rank = rank;
      member.ready = false;
      if (member.there)
        out.emplace_back(group::Join{id, rank});
      else
        missing.push_back(rank);  // lost while this generation was being decided
    }
    for (const int id : before)
      if (at(id).rank < 0 && at(id).there) {
        ++leaving_;
        out.emplace_back(group::Dismiss{id});
      }
    if (!missing.empty()) break_up(std::move(missing), out);
  }

  void on(const group::Joined& joined, Actions& out) {
    if (state_ != State::forming || joined.generation != generation_) return;
    Member& member = at(joined.member);
    if (!member.there || member.rank < 0 || std::exchange(member.ready, true)) return;
    if (++ready_ < ranks_.size()) return;
    state_ = State::running;
    out.emplace_back(group::Run{});
    report_complete(out);
  }

  void on(const group::Gone& gone, Actions& out) {
    std::vector<int> lost;
    for (const int id : gone.members) {
      Member& member = at(id);
      if (!std::exchange(member.there, false)) continue;
      --present_;
      if (member.rank < 0)
        --leaving_;
      else
        lost.push_back(member.rank);
    }
    if (state_ == State::ending)
      end(out);
    else if (lost.empty())
      report_complete(out);
    else if (state_ != State::over)
      break_up(std::move(lost), out);
  }

  void on(const group::End&, Actions& out) {
    if (state_ == State::ending || state_ == State::over) return;
    state_ = State::ending;
    for (const int id : ranks_)
      if (at(id).there) out.emplace_back(group::Dismiss{id});
    end(out);
  }

  void break_up(std::vector<int> lost, Actions& out) {
    if (std::exchange(state_, State::broken) != State::broken)
      for (const int id : ranks_)
        if (at(id).there) out.emplace_back(group::Halt{id});
    out.emplace_back(group::Broken{std::move(lost)});
  }
  void report_complete(Actions& out) {
    if (state_ == State::running && leaving_ == 0 && !std::exchange(complete_, true))
      out.emplace_back(group::Complete{});
  }
  void end(Actions& out) {
    if (present_ > 0) return;
    state_ = State::over;
    out.emplace_back(group::Over{});
  }

  State state_ = State::empty;
  std::uint32_t generation_ = 0;
  std::vector<Member> members_;  // by number, including members that are gone
  std::vector<int> ranks_;       // members of the present generation, by rank
  std::size_t ready_ = 0;
  int present_ = 0, leaving_ = 0;
  bool complete_ = false;
};

}  // namespace hypertune::inline v0
