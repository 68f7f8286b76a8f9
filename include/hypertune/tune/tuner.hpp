// The Tuner: runs an experiment to its end on an executor.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/tune/options.hpp>

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace hypertune::inline v0 {

/// One experiment, from start (or resumption) to end. Its events come from any thread; the decisions are made one at a
/// time.
class Tuner {
 public:
  Tuner(SearchSpace space, std::shared_ptr<const Program> program, Options options);
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;
  ~Tuner();

  /// Runs until nothing is left to do, a stop condition is met or the user interrupts; returns what came of it. Throws
  /// Error when the experiment cannot start, the disk fails, or an algorithm throws; what was recorded stays.
  /// Once only: a second call is an Error of kind `usage`.
  Results run();
  /// The same; a stop that is requested of `token`, now or later, is a stop().
  Results run(std::stop_token token);

  /// run() as an Asio operation: include <hypertune/tune/async_run.hpp>. `token` is any completion token for
  /// `void(std::exception_ptr, Results)`; it completes by a post to the associated executor. An exception_ptr and no
  /// error_code, as an Error's text says what to mend; error_code_of() gives its code. Cancellation of any type is a
  /// stop() at first, after which it completes with the results so far and without an error; the second one is a
  /// stop_now(). The Tuner must live until it has completed; its destructor waits for run() to leave.
  template <class CompletionToken>
  auto async_run(CompletionToken&& token);

  /// Any thread: let each trial save at its next report, then return from run(). The experiment can be resumed.
  void stop();
  /// Any thread: do not wait for the next reports. Trials have a second to leave; then they are left behind.
  void stop_now();

  const std::filesystem::path& directory() const;
  /// Any thread, while run() runs: one sentence why a trial waits; empty when it runs or has ended.
  std::string why_pending(TrialId trial);

 private:
  // Begins run() on a thread of the Tuner's own, which calls `done` at the end.
  void start(std::function<void(std::exception_ptr, Results)> done);

  class State;
  std::unique_ptr<State> self_;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/tuner.hpp>
#endif
