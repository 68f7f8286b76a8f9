// Notices: lines for the user from an executor's own threads.
#pragma once

#include <hypertune/detail/say.hpp>
#include <hypertune/execute/executor.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// What says a line while no experiment does: `say` where it is set, else the standard error with `prefix` before the
/// line, and nothing where that is to be quiet.
inline std::function<void(const std::string&)> said_by(std::function<void(const std::string&)> say, bool quiet,
                                                       std::string prefix = {}) {
  if (say) return say;
  return [quiet, prefix = std::move(prefix)](const std::string& line) {
    if (!quiet) hypertune::detail::say(prefix + line);
  };
}

/// They go through the experiment, as soon as that takes events and as long as it does; else to `otherwise`, or, where
/// there is none, they wait. Thread-safe.
class Notices {
 public:
  explicit Notices(std::function<void(const std::string&)> otherwise = {}) : otherwise_(std::move(otherwise)) {}

  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (sink_ && taking_)
      sink_(Notice{text});
    else if (sink_ || !otherwise_)
      waiting_.push_back(text);
    else
      otherwise_(text);
  }
  /// Where the experiment takes no events yet, at once and on standard error: it may be long until it does.
  void say_now(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (sink_ && taking_)
      sink_(Notice{text});
    else
      hypertune::detail::say("hypertune: " + text);
  }

  /// An experiment begins, which takes no events before take().
  void start(EventSink sink) {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    taking_ = false;
  }
  /// The experiment has begun to ask for things. Also from its own thread, while another one is within say().
  void take() {
    if (taking_) return;
    const std::lock_guard lock(mutex_);
    taking_ = true;
  }
  /// The same, and it gets what has waited until then. Not from within a command.
  void flush() {
    const std::lock_guard lock(mutex_);
    taking_ = true;
    if (!sink_) return;
    for (const auto& text : std::exchange(waiting_, {})) sink_(Notice{text});
  }
  void end() {
    const std::lock_guard lock(mutex_);
    sink_ = nullptr;
    if (!otherwise_) return;
    for (const auto& text : std::exchange(waiting_, {})) otherwise_(text);
  }

 private:
  std::mutex mutex_;  // held while the experiment takes a notice, which asks for nothing here
  std::function<void(const std::string&)> otherwise_;
  EventSink sink_;
  std::atomic<bool> taking_{false};
  std::vector<std::string> waiting_;
};

}  // namespace hypertune::inline v0::remote
