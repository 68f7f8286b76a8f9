// OrderedGate: takes events in the order of round and trial instead of arrival.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace hypertune {

/// With it a parallel run makes the same decisions every time, where the training itself is reproducible: each trial's
/// next event is due one round after its last, rounds are taken one after the other, trials of a round by number. It is
/// what a simulation with steps of equal length would do. The price: a round lasts as long as its slowest step.
class OrderedGate {
 public:
  /// A trial was launched in the present round: its first report is due in the next one.
  void launched(TrialId trial) {
    due_[trial] = round_ + 1;
    order_.insert({round_ + 1, trial});
  }

  void offer(Event event) {
    const auto trial = turn_of(event);
    if (trial && due_.contains(*trial))
      waiting_[*trial].push_back(std::move(event));
    else
      free_.push_back(std::move(event));
  }

  /// The next event whose turn it is, if it has come.
  std::optional<Event> next() {
    if (!free_.empty()) {
      Event event = std::move(free_.front());
      free_.pop_front();
      return event;
    }
    if (order_.empty()) return std::nullopt;
    const auto [round, trial] = *order_.begin();
    const auto found = waiting_.find(trial);
    if (found == waiting_.end()) return std::nullopt;
    Event event = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) waiting_.erase(found);
    round_ = round;
    if (std::holds_alternative<Reported>(event)) {
      order_.erase(order_.begin());
      due_[trial] = round + 1;
      order_.insert({round + 1, trial});
    } else {
      order_.erase(order_.begin());
      due_.erase(trial);
    }
    return event;
  }

  /// The trial was told to pause or stop: its answer to that is due in this round, before anything else.
  void ending(TrialId trial) {
    const auto found = due_.find(trial);
    if (found == due_.end()) return;
    order_.erase({found->second, trial});
    found->second = round_;
    order_.insert({round_, trial});
  }

 private:
  // Reports and ends have their turn; the rest changes no decision and is taken as it comes.
  static std::optional<TrialId> turn_of(const Event& event) {
    return std::visit(
        [](const auto& e) -> std::optional<TrialId> {
          using E = std::decay_t<decltype(e)>;
          if constexpr (std::same_as<E, Reported> || std::same_as<E, Paused> || std::same_as<E, Finished> ||
                        std::same_as<E, Stopped> || std::same_as<E, Failed>)
            return e.trial;
          else
            return std::nullopt;
        },
        event);
  }

  std::int64_t round_ = 0;
  std::map<TrialId, std::int64_t> due_;
  std::set<std::pair<std::int64_t, TrialId>> order_;
  std::map<TrialId, std::deque<Event>> waiting_;
  std::deque<Event> free_;
};

}  // namespace hypertune
