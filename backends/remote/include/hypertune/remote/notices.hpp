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

/// Returns a function that prints a line while no experiment takes it: `say` if set; otherwise standard error, with
/// `prefix` before the line, or nothing if `quiet`.
inline std::function<void(const std::string&)> said_by(std::function<void(const std::string&)> say, bool quiet,
                                                       std::string prefix = {}) {
  if (say) return say;
  return [quiet, prefix = std::move(prefix)](const std::string& line) {
    if (!quiet) hypertune::detail::say(prefix + line);
  };
}

/// Lines go to the experiment while it takes events. Before and after, they go to `otherwise`; without that, they are
/// queued. Thread-safe.
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
  /// As say(), but if the experiment takes no events yet, prints to standard error at once instead of queueing.
  void say_now(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (sink_ && taking_)
      sink_(Notice{text});
    else
      hypertune::detail::say("hypertune: " + text);
  }

  /// An experiment begins; it takes no events before take() or flush().
  void start(EventSink sink) {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    taking_ = false;
  }
  /// The experiment has issued its first command. May be called on its own thread while another thread is inside say().
  void take() {
    if (taking_) return;
    const std::lock_guard lock(mutex_);
    taking_ = true;
  }
  /// As take(), and delivers the queued lines. Must not be called from within a command.
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
  std::mutex mutex_;  // held while the experiment takes a notice, which must not call back here
  std::function<void(const std::string&)> otherwise_;
  EventSink sink_;
  std::atomic<bool> taking_{false};
  std::vector<std::string> waiting_;
};

}  // namespace hypertune::inline v0::remote
