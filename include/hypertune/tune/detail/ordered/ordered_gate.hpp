// OrderedGate: passes events on in the order of round and trial instead of arrival.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/tune/detail/trial_table.hpp>

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

/// Makes a parallel run take the same decisions every time, provided that the training itself is reproducible. Each
/// trial's next event is due one round after its last one. Rounds are processed one after the other, and the trials of
/// a round by number, as in a simulation whose steps all take equally long. The price: a round lasts as long as its
/// slowest step.
///
/// A trial whose host was lost or preempted keeps its turn if it goes on elsewhere at once or waits for that host. The
/// other trials wait until it has repeated the lost steps, which take no turns, so that the run decides as if nothing
/// had happened. A trial that neither finds room nor waits for its host loses its place, because all others would wait
/// for ever.
class OrderedGate {
 public:
  /// A trial was launched in the present round. Its first report of a step that is not yet recorded (`done`: the number
  /// of recorded steps) is due in the next round. So the order does not depend on the checkpoint that the trial was
  /// restored from.
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
  /// The same for a trial whose launch is still to come, because it waits for a host.
  void held(TrialId trial, int done = 0) {
    launched(trial, 0, done);
    turns_.at(trial).held = true;
  }
  /// The trial has no running attempt any more, whatever ended it.
  void left(TrialId trial) {
    if (away_ == trial) away_.reset();
    leave(trial);
  }

  /// A pause was recorded for the trial. Usually its own event has just taken that turn. If instead its failure counts
  /// as the pause, or an earlier driver did not record the pause any more, the trial leaves now: if it is chosen to go
  /// on at once, that is a new launch, due in the next round.
  void paused(TrialId trial) {
    const auto found = turns_.find(trial);
    if (away_ == trial || (found != turns_.end() && found->second.held)) left(trial);
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

  /// The event whose turn it is; nullopt if it has not arrived yet.
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

  /// The trial was told to stop (`stops`) or to pause. The event that confirms this is due in the present round.
  void ending(TrialId trial, bool stops = true) {
    const auto found = turns_.find(trial);
    if (found == turns_.end()) return;
    order_.erase({found->second.due, trial});
    found->second.due = round_;
    found->second.stopping = stops;
    order_.insert({round_, trial});
  }

  /// To be called after all decisions on the last event have been carried out.
  void after_event() {
    if (const auto trial = std::exchange(away_, std::nullopt)) leave(*trial);
    // Events that waited behind a report which has now been taken and that need no turn: a checkpoint, or a failure
    // that is not the trial's own.
    for (auto& [trial, turn] : turns_)
      while (!turn.waiting.empty() && (!has_turn(turn.waiting.front()) || displaced(turn.waiting.front(), turn))) {
        free_.push_back(std::move(turn.waiting.front()));
        turn.waiting.pop_front();
      }
  }

  // ---- Replay: trials that ran under an earlier driver keep their turns ----

  /// Applies a record of an earlier driver. `trials`: their state after that record.
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
  /// To be called after the last record of a driver: the trials that ran then wait to be launched again.
  void replayed() {
    away_.reset();
    for (auto& [trial, turn] : left_behind_)
      if (turns_.try_emplace(trial, std::move(turn)).second) order_.insert({turns_.at(trial).due, trial});
    left_behind_.clear();
    // The rounds of a run that was not ordered are unknown.
    const bool in_order = order_.empty() || order_.rbegin()->first <= order_.begin()->first + 1;
    if (!in_order) order_.clear();
    for (auto& [trial, turn] : turns_) {
      turn.held = true;
      if (in_order) continue;
      turn.due = round_ + 1;
      order_.insert({turn.due, trial});
    }
  }
  /// Trials that have a turn but have not been launched yet.
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
    bool stopping = false;  // it was told to stop
    bool held = false;      // its launch is still to come
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
    if (found == turns_.end()) return;  // it was not running
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
    if (found == turns_.end() || found->second.held) return;             // the attempt ended with its driver
    if (e.retry && e.cause.source == FailureSource::preemption) {        // an interruption: takes no turn
      left_behind_.insert_or_assign(e.trial, std::move(found->second));  // leave() still needs its round
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
  // A trial that failed and was not launched again at once loses its place.
  void leave_away(TrialId but) {
    if (away_ && *away_ != but) leave(*std::exchange(away_, std::nullopt));
  }

  void leave(TrialId trial) {
    const auto found = turns_.find(trial);
    if (found == turns_.end()) return;
    order_.erase({found->second.due, trial});
    turns_.erase(found);
  }
  // A failure that is not the trial's own: it keeps its place.
  static bool displaced(const Event& event, const Turn& turn) {
    const auto* failed = std::get_if<Failed>(&event);
    return failed != nullptr && failed->cause.source != FailureSource::user && failed->cause.retry && !turn.stopping;
  }
  // Reports and ends have a turn. All other events change no decision and are passed on as they come.
  static bool has_turn(const Event& event) {
    return std::holds_alternative<Reported>(event) || std::holds_alternative<Paused>(event) ||
           std::holds_alternative<Finished>(event) || std::holds_alternative<Stopped>(event) ||
           std::holds_alternative<Failed>(event);
  }
  // Events without a turn that may overtake waiting ones. A checkpoint may not: if it were recorded before the report
  // that it follows, the trial could be restored from it without that report.
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
  std::optional<TrialId> away_;          // a trial that has just failed and may be launched again at once
  std::map<TrialId, Turn> left_behind_;  // replay: turns of trials that were interrupted
};

}  // namespace hypertune::inline v0
