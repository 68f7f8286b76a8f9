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
  explicit Groups(Outlets outlets) : queue_(defined() ? make(std::move(outlets)) : nullptr) {}

  /// Whether the program has the definitions of groups.
  static bool defined() { return &Groups::make != nullptr; }

  /// Sets GroupPlace::network. To be called before the first command.
  void set_network(std::string network) {
    if (queue_) set_network(*queue_, std::move(network));
  }
  /// Queues a command if it is for a group; returns whether it is.
  bool perform(Command& command) {
    if (const auto* launch = std::get_if<Launch>(&command); launch != nullptr && launch->group)
      used_ = queue_ != nullptr;
    return used_ && take(*queue_, command);
  }
  /// Queues an event if it comes from a member of one of these groups; returns whether it does.
  bool on_event(Event& event) { return used_ && take(*queue_, event); }
  /// Members of an attempt were lost together, or (`leaving`) will be soon. Ignored if the attempt has no group here.
  void on_loss(TrialId trial, Attempt attempt, std::vector<int> members, Cause cause, bool leaving = false) {
    if (queue_) lose(*queue_, trial, attempt, std::move(members), std::move(cause), leaving);
  }
  /// Processes the queue. Must not be called while holding locks that `down`, `kill` or `up` take. Throws what these
  /// throw; what is still queued is processed by the next call.
  void work() {
    if (queue_) work(*queue_);
  }
  void clear() {
    used_ = false;
    if (queue_) clear(*queue_);
  }

 private:
  class Queue;
  // Weak, so that a program without this part links; called only if there is a queue.
  [[gnu::weak]] static std::shared_ptr<Queue> make(Outlets outlets);
  [[gnu::weak]] static void set_network(Queue& queue, std::string network);
  [[gnu::weak]] static bool take(Queue& queue, Command& command);
  [[gnu::weak]] static bool take(Queue& queue, Event& event);
  [[gnu::weak]] static void lose(Queue& queue, TrialId trial, Attempt attempt, std::vector<int> members, Cause cause,
                                 bool leaving);
  [[gnu::weak]] static void work(Queue& queue);
  [[gnu::weak]] static void clear(Queue& queue);

  std::shared_ptr<Queue> queue_;
  std::atomic<bool> used_{false};  // so that an experiment without groups takes no lock per report
};

}  // namespace hypertune::inline v0
