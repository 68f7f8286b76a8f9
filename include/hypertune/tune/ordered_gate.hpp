// OrderedGate: takes events in the order of round and trial instead of arrival.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/trial_table.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// With it a parallel run makes the same decisions every time, where the training itself is reproducible: each trial's
/// next event is due one round after its last, rounds are taken one after the other, trials of a round by number. It is
/// what a simulation with steps of equal length would do. The price: a round lasts as long as its slowest step.
///
/// A trial whose host was lost or preempted keeps its turn when it goes on elsewhere at once, or waits for that host:
/// the others wait until it has done again what was lost, which takes no turns, so that the run decides as if nothing
/// had happened. One that neither finds room nor waits leaves its place, as all others would wait for ever.
class OrderedGate {
 public:
  /// A trial was launched in the present round: the first report of a step that is not among the `done` ones, which are
  /// recorded, is due in the next one. From which checkpoint it goes on so changes no turn.
  void launched(TrialId trial, int next_step = 0, int done = 0) {
    const auto found = turns_.find(trial);
    if (found != turns_.end() && (away_ == trial || found->second.held)) {
      if (away_ == trial) away_.reset();
      found->second.next_step = next_step;
      found->second.held = false;
      return;
    }
    leave(trial);
    turns_[trial] = {.due = round_ + 1, .next_step = next_step, .last_step = done - 1};
    order_.insert({round_ + 1, trial});
  }
  /// The same, though the launch itself is still to come: it waits for a host.
  void held(TrialId trial, int done = 0) {
    launched(trial, 0, done);
    turns_.at(trial).held = true;
  }
  /// The trial has no attempt under way any more, whoever ended it.
  void left(TrialId trial) {
    if (away_ == trial) away_.reset();
    leave(trial);
  }

  /// What has just become of the trial counts as its pause, which was due: it takes no other turn.
  void paused(TrialId trial) {
    if (away_ != trial) return;
    away_.reset();
    leave(trial);
  }

  void offer(Event event) {
    const auto found = turns_.find(trial_of(event));
    if (found == turns_.end()) {
      free_.push_back(std::move(event));
      return;
    }
    Turn& turn = found->second;
    bool free = goes_ahead(event) || (turn.waiting.empty() && (!has_turn(event) || displaced(event, turn)));
    if (const auto* started = std::get_if<Started>(&event)) turn.next_step = started->next_step;
    if (const auto* reported = std::get_if<Reported>(&event)) {
      const int step = reported->report.step.value_or(turn.next_step);
      turn.next_step = step + 1;
      free = turn.waiting.empty() && step <= turn.last_step;
      if (!free) turn.last_step = step;
    }
    if (free)
      free_.push_back(std::move(event));
    else
      turn.waiting.push_back(std::move(event));
  }

  /// The next event whose turn it is, if it has come.
  std::optional<Event> next() {
    if (!free_.empty()) {
      Event event = std::move(free_.front());
      free_.pop_front();
      if (const auto* failed = std::get_if<Failed>(&event); failed != nullptr && turns_.contains(failed->trial))
        away_ = failed->trial;
      return event;
    }
    if (order_.empty()) return std::nullopt;
    const auto [round, trial] = *order_.begin();
    Turn& turn = turns_.at(trial);
    if (turn.waiting.empty()) return std::nullopt;
    Event event = std::move(turn.waiting.front());
    turn.waiting.pop_front();
    round_ = round;
    if (!std::holds_alternative<Reported>(event)) {
      leave(trial);
      return event;
    }
    order_.erase(order_.begin());
    turn.due = round + 1;
    order_.insert({round + 1, trial});
    return event;
  }

  /// The trial was told to pause or (`stops`) stop: its answer to that is due in this round, before anything else.
  void ending(TrialId trial, bool stops = true) {
    const auto found = turns_.find(trial);
    if (found == turns_.end()) return;
    order_.erase({found->second.due, trial});
    found->second.due = round_;
    found->second.stopping = stops;
    order_.insert({round_, trial});
  }

  /// What the last event brought about has been carried out.
  void after_event() {
    if (const auto trial = std::exchange(away_, std::nullopt)) leave(*trial);
    // What came of a trial behind a report that has now been taken: that it has failed, or has saved.
    for (auto& [trial, turn] : turns_)
      while (!turn.waiting.empty() && (!has_turn(turn.waiting.front()) || displaced(turn.waiting.front(), turn))) {
        free_.push_back(std::move(turn.waiting.front()));
        turn.waiting.pop_front();
      }
  }

  // ---- Replay: who has run under an earlier driver has the turn that it had ----

  /// Takes over a record of an earlier driver. `trials`: after it.
  void replay(const record::Any& what, const TrialTable& trials) {
    detail::visit(
        [&](const auto& e) {
          using E = std::decay_t<decltype(e)>;
          if constexpr (std::is_same_v<E, record::ExperimentStarted>)
            replayed();
          else if constexpr (std::is_same_v<E, record::TrialStarted>)
            replay_start(e, trials[e.trial].steps);
          else if constexpr (std::is_same_v<E, record::TrialReported>)
            replay_report(e, trials[e.trial].owed != Decision::proceed);
          else if constexpr (std::is_same_v<E, record::AttemptFailed>)
            replay_failure(e);
          else if constexpr (std::is_same_v<E, record::TrialEnded> || std::is_same_v<E, record::TrialPaused>)
            replay_end(e.trial);
        },
        what);
  }
  /// After the last record of a driver: what ran then waits to be launched again.
  void replayed() {
    away_.reset();
    for (auto& [trial, turn] : left_behind_)
      if (turns_.try_emplace(trial, std::move(turn)).second) order_.insert({turns_.at(trial).due, trial});
    left_behind_.clear();
    // The record of a run that was not in order tells of no rounds.
    const bool in_order = order_.empty() || order_.rbegin()->first <= order_.begin()->first + 1;
    if (!in_order) order_.clear();
    for (auto& [trial, turn] : turns_) {
      turn.held = true;
      if (in_order) continue;
      turn.due = round_ + 1;
      order_.insert({turn.due, trial});
    }
  }
  /// Trials that are waited for and were not launched yet.
  std::vector<TrialId> awaited() const {
    std::vector<TrialId> trials;
    for (const auto& [trial, turn] : turns_)
      if (turn.held) trials.push_back(trial);
    return trials;
  }

 private:
  struct Turn {
    std::int64_t due = 0;
    int next_step = 0;
    int last_step = -1;     // the last one that has, or will have, had a turn
    bool stopping = false;  // it will not go on, whatever becomes of it
    bool held = false;      // it has not been launched yet
    std::deque<Event> waiting = {};
  };

  void replay_start(const record::TrialStarted& e, int done) {
    left_behind_.erase(e.trial);
    launched(e.trial, e.next_step, done);
    turns_.at(e.trial).held = false;
  }
  void replay_report(const record::TrialReported& e, bool ends) {
    leave_away(e.trial);
    const auto found = turns_.find(e.trial);
    if (found == turns_.end()) return;  // nothing of it ran
    Turn& turn = found->second;
    order_.erase({turn.due, e.trial});
    round_ = turn.due;
    turn.due = ends ? round_ : round_ + 1;
    turn.stopping = ends;
    turn.last_step = e.step;
    order_.insert({turn.due, e.trial});
  }
  void replay_failure(const record::AttemptFailed& e) {
    leave_away(e.trial);
    const auto found = turns_.find(e.trial);
    if (found == turns_.end() || found->second.held) return;       // one that its driver's end has cost its attempt
    if (e.retry && e.cause.source == FailureSource::preemption) {  // no turn: it was told to leave
      left_behind_.insert_or_assign(e.trial, std::move(found->second));  // its number, which leave() needs, stays
      leave(e.trial);
      return;
    }
    if (e.retry && e.cause.source == FailureSource::infrastructure && !found->second.stopping) {
      away_ = e.trial;
      return;
    }
    replay_end(e.trial);
  }
  void replay_end(TrialId trial) {
    leave_away(trial);
    if (const auto found = turns_.find(trial); found != turns_.end() && !found->second.held) round_ = found->second.due;
    leave(trial);
  }
  // One that failed and was not launched again at once has left its place.
  void leave_away(TrialId but) {
    if (away_ && *away_ != but) leave(*std::exchange(away_, std::nullopt));
  }

  void leave(TrialId trial) {
    const auto found = turns_.find(trial);
    if (found == turns_.end()) return;
    order_.erase({found->second.due, trial});
    turns_.erase(found);
  }
  // Not by its own doing: the trial keeps its place.
  static bool displaced(const Event& event, const Turn& turn) {
    const auto* failed = std::get_if<Failed>(&event);
    return failed != nullptr && failed->cause.source != FailureSource::user && failed->cause.retry && !turn.stopping;
  }
  // Reports and ends have their turn; the rest changes no decision and is taken as it comes.
  static bool has_turn(const Event& event) {
    return std::holds_alternative<Reported>(event) || std::holds_alternative<Paused>(event) ||
           std::holds_alternative<Finished>(event) || std::holds_alternative<Stopped>(event) ||
           std::holds_alternative<Failed>(event);
  }
  // Of those that have no turn: a checkpoint stays behind the report that it was made after, as a record that has it
  // before its report would go on from it without that.
  static bool goes_ahead(const Event& event) {
    return !has_turn(event) && !std::holds_alternative<Checkpointed>(event);
  }
  static TrialId trial_of(const Event& event) {
    return detail::visit(
        [](const auto& e) -> TrialId {
          if constexpr (requires { e.trial; })
            return e.trial;
          else
            return -1;
        },
        event);
  }

  std::int64_t round_ = 0;
  std::map<TrialId, Turn> turns_;
  std::set<std::pair<std::int64_t, TrialId>> order_;
  std::deque<Event> free_;
  std::optional<TrialId> away_;          // has just failed, and may be launched again at once
  std::map<TrialId, Turn> left_behind_;  // replay: of those that were interrupted
};

}  // namespace hypertune::inline v0
