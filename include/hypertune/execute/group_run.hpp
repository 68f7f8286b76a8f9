// GroupRun: one attempt of several workers, made of runs of one worker each. No I/O.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/group_machine.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Stands between the Tuner, to which the attempt is one, and whoever runs its members, to whom each is an attempt of
/// its own with a number. Every executor forms its groups by it. Members may end, be lost, report and join in any
/// order. Not thread-safe.
class GroupRun {
 public:
  /// What is to be done because of what happened, in this order.
  struct Actions {
    std::vector<Command> down;  ///< to members
    std::vector<int> kill;      ///< members that are to be ended by force, if that is possible: they are lost
    std::vector<Event> up;      ///< to the Tuner
  };

  /// `network`: of GroupPlace.
  GroupRun(Launch launch, std::string network) : launch_(std::move(launch)), network_(std::move(network)) {}

  Attempt attempt() const { return launch_.attempt; }
  /// Nothing is left of it.
  bool over() const { return over_; }
  bool parked() const { return phase_ == Phase::parked; }

  Actions begin();
  /// Launch (of a parked one), Continue, Pause, Stop, Resize of this attempt.
  Actions perform(const Command& command);
  /// What a member says, or what became of it. Of members that are gone nothing is heard.
  Actions hear(Event event);
  /// These members are gone, together.
  Actions lost(const std::vector<int>& members, Cause cause);
  /// They will be gone soon. The attempt goes on without them, or, where that cannot be, ends after its next report.
  Actions warn(const std::vector<int>& members, Cause cause);

 private:
  static constexpr int patience = 3;  // breaks between two reports
  enum class Phase : std::uint8_t { running, pausing, parked, stopping, finishing, failing };
  struct Member {
    bool there = true;
    bool trained = false;                 // in a generation that has run: it has what the others have
    bool told = true;                     // of its place in the newest generation
    bool done = false;                    // it has come to its end by itself: the others go on without it
    std::optional<int> started = {};      // the step that it began with
    std::optional<Reported> report = {};  // which waits for its answer
    bool parked = false;
  };

  void on(const Launch& launch);
  void on(const Continue& c);
  void on(const Pause& c);
  void on(const Stop& c);
  void on(Resize c);
  void on(const GroupMessage&) {}

  void heard(Started& e);
  void heard(Reported& e);
  void heard(Checkpointed& e);
  void heard(Paused& e);
  void heard(Finished& e) { ended(e.member, e); }
  void heard(Stopped& e) { ended(e.member, e); }
  void heard(Failed& e) { ended(e.member, e); }
  void heard(GroupMessage& m);
  void late(const GroupMessage& m);
  void given_up(int member);
  void all_given_up();
  void end_if_stuck();
  template <class E>
  void heard(E& e) {
    out_.up.emplace_back(std::move(e));
  }

  void ended(int member, const Finished& e);
  void ended(int member, const Stopped& e);
  void ended(int member, Failed e);
  void leave(int member);
  void lose(std::vector<int> members, Cause cause);
  void tell_lost(std::vector<int> ranks);
  void fail_all(Cause cause);
  void form(std::vector<int> from);
  void follow(const std::vector<group::Action>& actions);
  void halt(int member, std::uint32_t generation, const std::vector<int>& ranks);
  void tell_places();
  void tell_place(int member);
  void answer(int member);
  void tell_report(Reported report);
  bool tell_untold(int before);
  void tell_all();
  void close_if_empty();
  int who_saves();
  void rest();
  void lead_rests(bool parked);
  void pause_is_over();

  Member& at(int member) { return members_.at(static_cast<std::size_t>(member)); }
  int present() const;
  GroupPlace place_of(int rank) const;
  Launch member_launch(int member, int rank) const;
  void send(int member, GroupMessage message);
  static int step_of(const Reported& report) { return report.report.step.value_or(0); }
  bool fixed() const { return fixed_ || !joined_; }

  Launch launch_;
  std::string network_;
  GroupMachine machine_;
  std::vector<Member> members_;  // by number, as the machine has them
  Phase phase_ = Phase::running;
  bool joined_ = false;    // some member has joined a generation
  bool fixed_ = false;     // … and cannot leave it
  bool committed_ = true;  // some member, since the last loss
  bool told_started_ = false, resizing_ = false, over_ = false, finished_ = false;
  int newcomers_ = 0;               // that are still to join, before the others are told to leave their generation
  bool intact_ = false;             // the generation before goes on meanwhile
  std::uint32_t before_ = 0;        // … and this is it
  std::set<int> given_up_;          // members that have left the generation that runs
  bool unreachable_ = false;        // all of them: the next one is to be formed at once
  int breaks_ = 0;                  // how often that was so, since the last report
  int told_ = -1;                   // the last step that the Tuner was told of
  int answered_ = -1;               // … and that it has answered
  int ahead_ = -1;                  // the last step after which some member went on before the Tuner had said so
  std::map<int, Reported> untold_;  // what such members said, by step
  bool save_at_end_ = false;
  bool save_ = false;  // rank 0 is to save at that step
  Pause pause_ = {};
  bool lead_first_ = false;           // the others are told to pause when it is known what became of rank 0
  std::optional<Cause> cause_;        // of its end
  std::optional<Cause> warned_ = {};  // it cannot go on without some that are about to be lost
  std::set<int> late_;                // members that are ended as such
  Cause loss_;                        // of those that were lost last
  std::map<std::pair<std::uint32_t, std::string>, std::string> store_;         // by generation and key
  std::map<std::pair<std::uint32_t, std::string>, std::vector<int>> waiting_;  // members
  Actions out_;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/execute/impl/group_run.hpp>
#include <hypertune/execute/impl/group_run_commands.hpp>
#include <hypertune/execute/impl/group_run_events.hpp>
#endif
