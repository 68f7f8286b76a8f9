// The Tuner: runs an experiment to its end on an executor.
#pragma once

#include <hypertune/detail/definitions.hpp>
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

/// One experiment, from its start (or resumption) to its end. Events may come from any thread; decisions are made one
/// at a time.
class Tuner {
 public:
  /// Checks nothing and touches no file: run() does.
  Tuner(SearchSpace space, std::shared_ptr<const Program> program, Options options);
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;
  /// If async_run() has not ended: calls stop_now() and waits.
  ~Tuner();

  /// Runs until nothing is left to do, a stop condition is met or the user interrupts; returns the results. Throws an
  /// Error if the experiment cannot start, the disk fails, or an algorithm throws; the record is kept. May be called
  /// once: a second call throws an Error of kind `usage`.
  Results run();
  /// The same; a stop request on `token`, now or later, calls stop().
  Results run(std::stop_token token);

  /// run() as an Asio operation: include <hypertune/tune/async_run.hpp>. `token` is any completion token for
  /// `void(std::exception_ptr, Results)`; it completes by a post to the associated executor. The signature has an
  /// exception_ptr and no error_code because an Error's text says how to fix it; error_code_of() gives its code. The
  /// first cancellation, of any type, calls stop(): the operation completes with the results so far and without an
  /// error. The second one calls stop_now(). The Tuner must live until the operation has completed. Its destructor
  /// calls stop_now() and waits until run() has returned: an operation under way then completes with the results so
  /// far.
  template <class CompletionToken>
  auto async_run(CompletionToken&& token);

  /// Lets each trial save at its next report, then run() returns. The experiment can be resumed. May be called from any
  /// thread.
  void stop();
  /// Does not wait for the next reports: trials have a second to leave, then they are abandoned. May be called from any
  /// thread.
  void stop_now();

  /// The experiment's folder; it may be a relative path. run() determines it at its beginning; before, it is empty.
  /// Other threads must not call this before that: they may once a trial or a callback has been called.
  const std::filesystem::path& directory() const;
  /// One sentence why a trial waits; empty if it runs or has ended; says so if there is no such trial (yet). May be
  /// called from any thread while run() runs.
  std::string why_pending(TrialId trial);

 private:
  // Starts run() on a thread that the Tuner owns and that calls `done` at the end. If it cannot, `done` gets the error.
  void start(std::function<void(std::exception_ptr, Results)> done);

  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0
