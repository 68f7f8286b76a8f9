// Groups: the groups of an executor. Connects the Tuner's commands with the executor's runs of one worker each.
#pragma once

#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/group_run.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// Thread-safe. Messages are queued and processed in order by one thread at a time: if another thread is processing,
/// the calling thread only queues its message. Therefore `down`, `kill` and `up` may call this object again.
class Groups {
 public:
  struct Outlets {
    std::function<void(Command)> down;                ///< a command to a member; a Launch has its `seat`
    std::function<void(TrialId, Attempt, int)> kill;  ///< kills this member
    std::function<void(Event)> up;                    ///< an event for the Tuner
  };
  explicit Groups(Outlets outlets) : outlets_(std::move(outlets)) {}

  /// Sets GroupPlace::network. To be called before the first command.
  void set_network(std::string network) { network_ = std::move(network); }

  /// Queues a command if it is for a group; returns whether it is.
  bool perform(Command& command) {
    if (const auto* launch = std::get_if<Launch>(&command); launch != nullptr && launch->group) used_ = true;
    if (!used_) return false;
    const std::lock_guard guard(mutex_);
    const bool ours = std::visit(
        [&](const auto& c) {
          using C = std::decay_t<decltype(c)>;
          if constexpr (std::is_same_v<C, GroupMessage>)
            return false;
          else if constexpr (std::is_same_v<C, Launch>)
            return !c.seat && (c.group || (c.parked && known_.contains(c.trial)));
          else
            return known_.contains(c.trial);
        },
        command);
    if (!ours) return false;
    if (const auto* launch = std::get_if<Launch>(&command)) known_[launch->trial] = launch->attempt;
    queue_.emplace_back(std::move(command));
    return true;
  }
  /// Queues an event if it comes from a member of one of these groups; returns whether it does.
  bool on_event(Event& event) {
    if (!used_) return false;
    const std::lock_guard guard(mutex_);
    const bool ours = std::visit(
        [&](const auto& e) {
          if constexpr (requires { e.member; })
            return known_.contains(e.trial);
          else
            return false;
        },
        event);
    if (ours) queue_.emplace_back(std::move(event));
    return ours;
  }
  /// Members of an attempt were lost together, or (`leaving`) will be soon. Ignored if the attempt has no group here.
  void on_loss(TrialId trial, Attempt attempt, std::vector<int> members, Cause cause, bool leaving = false) {
    const std::lock_guard guard(mutex_);
    queue_.emplace_back(Loss{trial, attempt, std::move(members), std::move(cause), leaving});
  }
  /// Processes the queue. Must not be called while holding locks that `down`, `kill` or `up` take. Throws what these
  /// throw; what is still queued is processed by the next call.
  void work() {
    try {
      process_queue();
    } catch (...) {
      const std::lock_guard guard(mutex_);
      busy_ = false;
      throw;
    }
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    used_ = false;
    queue_.clear();
    known_.clear();
    runs_.clear();
  }

 private:
  struct Loss {
    TrialId trial = 0;
    Attempt attempt = 0;
    std::vector<int> members;
    Cause cause;
    bool leaving = false;
  };

  void process_queue() {
    for (bool mine = false;;) {
      std::variant<Command, Event, Loss> next;
      {
        const std::lock_guard guard(mutex_);
        if (!mine && std::exchange(busy_, true)) return;
        mine = true;
        if (queue_.empty()) {
          busy_ = false;
          return;
        }
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      if (auto* command = std::get_if<Command>(&next))
        carry_out(*command);
      else if (auto* event = std::get_if<Event>(&next))
        deliver(*event);
      else
        on_loss(std::get<Loss>(next));
    }
  }
  void on_loss(Loss& loss) {
    if (const auto run = find(loss.trial, loss.attempt))
      apply(loss.trial, run,
            loss.leaving ? run->warn(loss.members, std::move(loss.cause))
                         : run->lost(loss.members, std::move(loss.cause)));
  }
  void carry_out(Command& command) {
    if (auto* launch = std::get_if<Launch>(&command); launch != nullptr && !launch->parked) {
      const TrialId trial = launch->trial;
      const auto run = std::make_shared<GroupRun>(std::move(*launch), network_);
      runs_[trial] = run;
      return apply(trial, run, run->begin());
    }
    const auto [trial, attempt] = std::visit([](const auto& c) { return std::pair(c.trial, c.attempt); }, command);
    const auto run = find(trial, attempt);
    if (run)
      apply(trial, run, run->perform(command));
    else if (std::holds_alternative<Launch>(command))
      outlets_.up(
          Failed{trial,
                 attempt,
                 {.source = FailureSource::infrastructure, .text = "while it was paused: its workers are gone"}});
  }
  void deliver(Event& event) {
    const auto [trial, attempt] = std::visit(
        [](const auto& e) {
          if constexpr (requires { e.attempt; })
            return std::pair<TrialId, Attempt>(e.trial, e.attempt);
          else
            return std::pair<TrialId, Attempt>(-1, 0);
        },
        event);
    if (const auto run = find(trial, attempt)) apply(trial, run, run->on_event(std::move(event)));
  }
  std::shared_ptr<GroupRun> find(TrialId trial, Attempt attempt) const {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second->attempt() == attempt ? found->second : nullptr;
  }
  void apply(TrialId trial, const std::shared_ptr<GroupRun>& run, GroupRun::Actions actions) {
    if (run->over()) {
      const std::lock_guard guard(mutex_);
      if (const auto known = known_.find(trial); known != known_.end() && known->second == run->attempt())
        known_.erase(known);
      if (const auto found = runs_.find(trial); found != runs_.end() && found->second == run) runs_.erase(found);
    }
    for (auto& command : actions.down) outlets_.down(std::move(command));
    for (const int member : actions.kill) outlets_.kill(trial, run->attempt(), member);
    for (auto& event : actions.up) outlets_.up(std::move(event));
  }

  Outlets outlets_;
  std::string network_;
  std::atomic<bool> used_{false};  // so that an experiment without groups takes no lock per report
  std::mutex mutex_;               // guards the next three
  std::deque<std::variant<Command, Event, Loss>> queue_;
  bool busy_ = false;
  std::unordered_map<TrialId, Attempt> known_;                   // attempts that commands are for
  std::unordered_map<TrialId, std::shared_ptr<GroupRun>> runs_;  // only used by the thread that processes the queue
};

}  // namespace hypertune::inline v0
