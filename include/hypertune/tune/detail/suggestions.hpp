// Suggestions: the searcher as the Controller sees it. The Controller never waits for the searcher.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Owns a searcher. At first the calling thread does the searcher's work. After defer(), observe() only queues
/// observations and suggest() only queues a request: a worker thread does the work by wait() and work(), and the
/// deciding thread calls suggest() again afterwards.
///
/// Either way the searcher is told everything in the order of observe(), and computes a suggestion only after it was
/// told everything known so far. There is one suggestion at a time, for one trial, and it is handed out before the next
/// one is begun, so that the searcher always knows all pending trials.
class Suggestions {
 public:
  explicit Suggestions(AnySearcher searcher) : searcher_(std::move(searcher)) {}
  Suggestions(const Suggestions&) = delete;
  Suggestions& operator=(const Suggestions&) = delete;

  void prepare(const SearchSpace& space, const SearchContext& goal);
  const std::string& name() const { return name_; }  ///< the searcher's name, once it is prepared
  /// From now on leaves the work to the thread that calls work(), unless the searcher says that it is cheap. Returns
  /// whether the work is deferred.
  bool defer();

  // ---- For the deciding thread, one call at a time. These rethrow what the searcher throws on either thread, as an
  // Error that names the searcher.

  void observe(const Observation& o);
  /// The searcher's answer for `trial`; nullopt while the worker thread computes it. If the searcher says that this one
  /// is quick, and the worker thread has nothing to do, the answer is computed at once. Do not ask for another trial
  /// before this answer was handed out.
  std::optional<Suggestion> suggest(TrialId trial, std::uint64_t seed);

  /// Whether suggest() has requested something that has not been computed yet.
  bool has_open_request();

  // ---- For the worker thread, one thread at a time

  /// Waits until there is something to do. False after close().
  bool wait();
  /// Tells the searcher the new observations and computes the requested suggestion. Returns whether suggest() has an
  /// answer (or an error) to fetch.
  bool work();
  /// The answer was offered and not taken. It will be computed again if it is requested after further observations.
  void answer_not_taken();

  /// Tells the searcher all remaining observations, even after close().
  void tell_remaining();

  // ---- For any thread

  /// From now on wait() returns false, and work() returns once the searcher's current call does.
  void close();
  /// Waits up to `seconds` until no work is under way; whether that is so.
  bool wait_idle(double seconds);

 private:
  /// An Observation that owns its data.
  struct Told {
    explicit Told(const Observation& o)
        : kind(o.kind),
          trial(o.trial),
          point(o.point),
          steps(o.steps),
          losses(o.losses.begin(), o.losses.end()),
          constraints(o.constraints.begin(), o.constraints.end()),
          state(o.state),
          elapsed(o.elapsed) {}
    Observation view() const {
      return {.kind = kind,
              .trial = trial,
              .point = point,
              .steps = steps,
              .losses = losses,
              .constraints = constraints,
              .state = state,
              .elapsed = elapsed};
    }
    Observation::Kind kind;
    TrialId trial;
    Point point;
    int steps;
    std::vector<double> losses, constraints;
    TrialState state;
    Seconds elapsed;
  };
  struct Wanted {
    TrialId trial;
    std::uint64_t seed;
  };
  struct Answer {
    TrialId trial;
    Suggestion suggestion;
    std::uint64_t told;  // number of observations that it is based on
    bool offered = false;
  };
  bool fresh(const Answer& answer) const;
  bool closed() const { return stop_.stop_requested(); }
  void tell_news(std::unique_lock<std::mutex>& guard, bool closed_too);
  std::optional<Suggestion> quick_answer(TrialId trial, std::uint64_t seed);
  Suggestion compute(TrialId trial, std::uint64_t seed);
  [[noreturn]] void rethrow_named() const;

  // Observations are cheap to keep and costly to learn from one by one. While no suggestion is requested, they wait
  // until there are this many.
  static constexpr std::size_t max_news = 256;

  AnySearcher searcher_;  // used by the working thread only
  std::string name_;
  bool deferred_ = false;
  std::stop_source stop_;  // stopped by close()

  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<Told> news_;
  std::uint64_t told_ = 0;
  std::optional<Wanted> wanted_;
  std::optional<Answer> answer_;
  std::exception_ptr error_, lost_;  // of the last request; permanent (the searcher has missed observations)
  bool working_ = false;
};

}  // namespace hypertune::inline v0
