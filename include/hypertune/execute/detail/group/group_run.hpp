// GroupRun: one attempt of several workers, composed of one run per worker. No I/O.
#pragma once

#include <hypertune/execute/detail/group/group_machine.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Presents a group to the Tuner as one attempt, and each member, identified by a number, to the code that runs it as
/// an attempt of its own. Every executor that runs groups uses this class. Members may end, be lost, report and join in
/// any order. Not thread-safe.
class GroupRun {
 public:
  /// What to do after an event, in this order.
  struct Actions {
    std::vector<Command> down;  ///< commands to members
    std::vector<int> kill;      ///< members to kill, if possible: they count as lost
    std::vector<Event> up;      ///< events for the Tuner
  };

  /// `network`: GroupPlace::network.
  GroupRun(Launch launch, std::string network) : launch_(std::move(launch)), network_(std::move(network)) {}

  Attempt attempt() const { return launch_.attempt; }
  /// Whether the attempt is over.
  bool over() const { return over_; }
  bool parked() const { return phase_ == Phase::parked; }

  Actions begin();
  /// Carries out a Launch (of a parked attempt), Continue, Pause, Stop or Resize of this attempt.
  Actions perform(const Command& command);
  /// Processes an event of a member. Events of members that are gone are ignored, except Checkpointed.
  Actions on_event(Event event);
  /// These members were lost together.
  Actions lost(const std::vector<int>& members, Cause cause);
  /// These members will be lost soon. The attempt goes on without them, or, if it cannot, ends after its next report.
  Actions warn(const std::vector<int>& members, Cause cause);

 private:
  static constexpr int patience = 3;  // times that the group may break between two reports
  enum class Phase : std::uint8_t { running, pausing, parked, stopping, finishing, failing };
  struct Member {
    bool there = true;
    bool trained = false;                 // in a generation that has run: it has the state of the others
    bool newcomer = false;                // others had trained when it was started, and it has not done a step yet
    bool told = true;                     // it knows its place in the newest generation
    bool done = false;                    // it has finished by itself: the others go on without it
    std::optional<int> started = {};      // the step that it began with
    std::optional<Reported> report = {};  // a report that waits for its answer
    bool parked = false;
    bool stuck = false;  // with pausing: it waits in a step for members that have paused
  };

  void on(const Launch& launch);
  void on(const Continue& c);
  void on(const Pause& c);
  void on(const Stop& c);
  void on(Resize c);
  void on(const GroupMessage&) {}

  void received(Started& e);
  void received(Reported& e);
  void received(Checkpointed& e);
  void received(Paused& e);
  void received(Finished& e) { ended(e.member, e); }
  void received(Stopped& e) { ended(e.member, e); }
  void received(Failed& e) { ended(e.member, e); }
  void received(GroupMessage& m);
  void late(const GroupMessage& m);
  void end_late(int member);
  void tell_waiting();
  bool out_of_step(int member, int rank, const GroupMessage& m);
  void stick(int member);
  void given_up(int member);
  void all_given_up();
  void end_if_stuck();
  template <class E>
  void received(E& e) {
    out_.up.emplace_back(std::move(e));
  }

  void ended(int member, const Finished& e);
  void ended(int member, const Stopped& e);
  void ended(int member, Failed e);
  void leave(int member);
  void on_loss(std::vector<int> members, Cause cause);
  void tell_lost(std::vector<int> ranks);
  void halt_before();
  void tell_halted();
  std::vector<int> newcomers() const;
  std::vector<int> training(std::uint32_t generation) const;
  void fail_all(Cause cause);
  void form(std::vector<int> from);
  void apply(const std::vector<group::Action>& actions);
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
  const Member& at(int member) const { return members_.at(static_cast<std::size_t>(member)); }
  int present() const;
  GroupPlace place_of(int rank) const;
  Launch member_launch(int member, int rank) const;
  void send(int member, GroupMessage message);
  static int step_of(const Reported& report) { return report.report.step.value_or(0); }
  bool fixed() const { return fixed_ || !joined_; }

  Launch launch_;
  std::string network_;
  GroupMachine machine_;
  std::vector<Member> members_;  // by number, as in machine_
  Phase phase_ = Phase::running;
  bool joined_ = false;    // some member has joined a generation
  bool fixed_ = false;     // members cannot leave a generation
  bool committed_ = true;  // some member has committed since the last loss
  bool told_started_ = false, resizing_ = false, over_ = false, finished_ = false;
  int newcomers_ = 0;                // new members still to join before the others are told to leave their generation
  bool intact_ = false;              // the previous generation goes on meanwhile
  std::uint32_t before_ = 0;         // the number of that generation
  std::vector<int> before_members_;  // its members, by rank
  std::set<int> given_up_;           // members that have left the running generation
  bool unreachable_ = false;         // all have left it: the next generation is formed at once
  int breaks_ = 0;                   // how often that has happened since the last report
  int out_of_step_ = 0;              // how often a rank had reported a step for which others still waited for it
  bool told_halted_ = false;         // the Tuner knows that no member trains
  bool told_waiting_ = false;        // the user was told that the others wait for new members
  int told_ = -1;                    // the last step reported to the Tuner
  int answered_ = -1;                // the last step that the Tuner has answered
  int ahead_ = -1;                   // the last step after which a member went on without the Tuner's answer
  std::map<int, Reported> untold_;   // the reports of such members, by step
  bool save_at_end_ = false;
  bool save_ = false;  // rank 0 is to save at step answered_
  Pause pause_ = {};
  bool lead_first_ = false;           // the others pause once it is known whether rank 0 has parked or ended
  std::optional<Cause> cause_;        // why the attempt ends
  std::optional<Cause> warned_ = {};  // why members that it needs will be lost soon
  std::set<int> late_;                // members killed for being late
  Cause loss_;                        // cause of the last loss
  std::map<std::pair<std::uint32_t, std::string>, std::string> store_;         // values by generation and key
  std::map<std::pair<std::uint32_t, std::string>, std::vector<int>> waiting_;  // members that wait for a value
  Actions out_;
};

}  // namespace hypertune::inline v0
