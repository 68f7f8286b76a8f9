// Groups: definitions.
#pragma once

#include <hypertune/execute/detail/group/group_run.hpp>
#include <hypertune/execute/detail/group/groups.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

class GroupQueue final : public Groups::Queue {
 public:
  explicit GroupQueue(Groups::Outlets outlets) : outlets_(std::move(outlets)) {}

  void set_network(std::string network) override { network_ = std::move(network); }

  bool take(Command& command) override {
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
  bool take(Event& event) override {
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
  void lose(TrialId trial, Attempt attempt, std::vector<int> members, Cause cause, bool leaving) override {
    const std::lock_guard guard(mutex_);
    queue_.emplace_back(Loss{trial, attempt, std::move(members), std::move(cause), leaving});
  }
  void work() override {
    try {
      process_queue();
    } catch (...) {
      const std::lock_guard guard(mutex_);
      busy_ = false;
      throw;
    }
  }
  void clear() override {
    const std::lock_guard guard(mutex_);
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

  Groups::Outlets outlets_;
  std::string network_;
  std::mutex mutex_;  // guards the next three
  std::deque<std::variant<Command, Event, Loss>> queue_;
  bool busy_ = false;
  std::unordered_map<TrialId, Attempt> known_;                   // attempts that commands are for
  std::unordered_map<TrialId, std::shared_ptr<GroupRun>> runs_;  // only used by the thread that processes the queue
};

std::unique_ptr<Groups::Queue> Groups::make(Outlets outlets) {
  return std::make_unique<GroupQueue>(std::move(outlets));
}

}  // namespace hypertune::inline v0
