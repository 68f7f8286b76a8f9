// Groups: the groups of an executor. Connects the Tuner's commands with the executor's runs of one worker each.
#pragma once

#include <hypertune/execute/executor.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// Thread-safe. Messages are queued and processed in order by one thread at a time: if another thread is processing,
/// the calling thread only queues its message. Therefore `down`, `kill` and `up` may call this object again.
///
/// A program may lack the part `groups` of the definitions: then defined() is false, and nothing is for a group.
class Groups {
 public:
  struct Outlets {
    std::function<void(Command)> down;                ///< a command to a member; a Launch has its `seat`
    std::function<void(TrialId, Attempt, int)> kill;  ///< kills this member
    std::function<void(Event)> up;                    ///< an event for the Tuner
  };
  /// What defines it: the part `groups`.
  class Queue {
   public:
    virtual ~Queue() = default;
    virtual void set_network(std::string network) = 0;
    virtual bool take(Command& command) = 0;
    virtual bool take(Event& event) = 0;
    virtual void lose(TrialId trial, Attempt attempt, std::vector<int> members, Cause cause, bool leaving) = 0;
    virtual void work() = 0;
    virtual void clear() = 0;
  };
  explicit Groups(Outlets outlets) : queue_(defined() ? make(std::move(outlets)) : nullptr) {}

  /// Whether the program has the definitions of groups.
  static bool defined() { return &Groups::make != nullptr; }

  /// Sets GroupPlace::network. To be called before the first command.
  void set_network(std::string network) {
    if (queue_) queue_->set_network(std::move(network));
  }
  /// Queues a command if it is for a group; returns whether it is.
  bool perform(Command& command) {
    if (const auto* launch = std::get_if<Launch>(&command); launch != nullptr && launch->group)
      used_ = queue_ != nullptr;
    return used_ && queue_->take(command);
  }
  /// Queues an event if it comes from a member of one of these groups; returns whether it does.
  bool on_event(Event& event) { return used_ && queue_->take(event); }
  /// Members of an attempt were lost together, or (`leaving`) will be soon. Ignored if the attempt has no group here.
  void on_loss(TrialId trial, Attempt attempt, std::vector<int> members, Cause cause, bool leaving = false) {
    if (queue_) queue_->lose(trial, attempt, std::move(members), std::move(cause), leaving);
  }
  /// Processes the queue. Must not be called while holding locks that `down`, `kill` or `up` take. Throws what these
  /// throw; what is still queued is processed by the next call.
  void work() {
    if (queue_) queue_->work();
  }
  void clear() {
    used_ = false;
    if (queue_) queue_->clear();
  }

 private:
  [[gnu::weak]] static std::unique_ptr<Queue> make(Outlets outlets);

  std::unique_ptr<Queue> queue_;
  std::atomic<bool> used_{false};  // so that an experiment without groups takes no lock per report
};

}  // namespace hypertune::inline v0
