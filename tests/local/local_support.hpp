// What the tests of local executors share: a recorder of events, and trials that do as their parameters say.
#pragma once

#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/local/processes.hpp>
#include <hypertune/trial/trainable.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

/// Keeps events, and lets a test wait for one.
class Events {
 public:
  void operator()(Event event) {
    {
      const std::lock_guard guard(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_all();
  }

  /// The next event of type E, skipping (and forgetting) those before it; fails the test after `seconds`.
  template <class E>
  E next(double seconds = 60) {
    std::unique_lock lock(mutex_);
    std::optional<E> found;
    const bool came = changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      while (!events_.empty() && !found) {
        if (auto* event = std::get_if<E>(&events_.front()))
          found = std::move(*event);
        else
          skipped_ += describe(events_.front());
        events_.pop_front();
      }
      return found.has_value();
    });
    INFO("skipped: " << skipped_);
    REQUIRE(came);
    skipped_.clear();
    return *found;
  }
  /// The next event that is of one of these types, as `next` gives it.
  template <class... E>
  std::variant<E...> next_of(double seconds = 60) {
    std::unique_lock lock(mutex_);
    std::optional<std::variant<E...>> found;
    const bool came = changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      for (; !events_.empty() && !found; events_.pop_front())
        (
            [&] {
              if (auto* event = std::get_if<E>(&events_.front())) found = std::move(*event);
            }(),
            ...);
      return found.has_value();
    });
    REQUIRE(came);
    return std::move(*found);
  }
  /// The first event of type E wherever it is; the others stay.
  template <class E>
  E find(double seconds = 20) {
    std::unique_lock lock(mutex_);
    std::optional<E> found;
    const bool came = changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      for (auto event = events_.begin(); event != events_.end() && !found; ++event)
        if (auto* wanted = std::get_if<E>(&*event)) {
          found = std::move(*wanted);
          events_.erase(event);
          break;
        }
      return found.has_value();
    });
    REQUIRE(came);
    return *found;
  }
  bool empty() {
    const std::lock_guard guard(mutex_);
    return events_.empty();
  }

 private:
  static std::string describe(const Event& event) {
    if (const auto* failed = std::get_if<Failed>(&event)) return "Failed(" + failed->cause.text + ") ";
    if (const auto* notice = std::get_if<Notice>(&event)) return "Notice(" + notice->text + ") ";
    return "event " + std::to_string(event.index()) + " ";
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  std::string skipped_;
};

/// A ProcessExecutor with a folder, a program, and its events.
struct Bench {
  explicit Bench(std::shared_ptr<const Program> program, ProcessOptions options = {}, double hang_timeout = 0,
                 std::uint64_t log_limit = default_log_limit)
      : executor(std::move(options)) {
    executor.start({.program = std::move(program),
                    .directory = directory.path(),
                    .sink = [this](Event e) { events(std::move(e)); },
                    .hang_timeout = hang_timeout,
                    .log_limit = log_limit});
  }
  Launch make(TrialId trial, std::string mode, Attempt attempt = 0) {
    Launch launch;
    launch.trial = trial;
    launch.attempt = attempt;
    launch.params = Params{{"mode", std::move(mode)}};
    launch.allocation.lead.resources.cpus = 1;
    return launch;
  }
  void launch(TrialId trial, std::string mode, Attempt attempt = 0) {
    executor.perform(make(trial, std::move(mode), attempt));
  }

  TemporaryDirectory directory;
  Events events;
  ProcessExecutor executor;  // last: it ends before what its events go to
};

/// A Program of a callable that makes a trial of the Context.
inline std::shared_ptr<const Program> program_of(std::function<Training(Context&)> body) {
  struct Config {
    Point point;
  };
  return make_program<Config>([](const Point& point) { return Config{point}; },
                              [body = std::move(body)](Config&, Context& context) { return body(context); }, "value");
}

}  // namespace hypertune::inline v0::test
