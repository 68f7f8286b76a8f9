// Suggestions: the searcher as the decisions see it, who never wait for it.
#pragma once

#include <hypertune/detail/linkage.hpp>
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

/// Owns a searcher. At first its work is done at once, by whoever calls. After defer() observe() only notes and
/// suggest() only asks: another thread does the work by wait() and work(), and whoever decides asks again when it has.
///
/// Either way the searcher is told everything in the order of observe(), and computes a suggestion only when it has
/// been told all that was known. There is one suggestion at a time, for one trial, and it is given out before the next
/// one is begun: what is pending is always known to the searcher.
class Suggestions {
 public:
  explicit Suggestions(AnySearcher searcher) : searcher_(std::move(searcher)) {}
  Suggestions(const Suggestions&) = delete;
  Suggestions& operator=(const Suggestions&) = delete;

  void prepare(const SearchSpace& space, const SearchContext& goal);
  const std::string& name() const { return name_; }  ///< as the searcher calls itself once prepared
  /// Leaves the work to whoever calls work() from now on, unless the searcher says that it is cheap. Returns true if
  /// it does.
  bool defer();

  // ---- By whoever decides, one call at a time. What the searcher throws, on whatever thread, comes out here: an Error
  // that names it.

  void observe(const Observation& o);
  /// The searcher's answer for `trial`; nullopt while it is computed elsewhere. Other trials must not be asked for
  /// before it was given out.
  std::optional<Suggestion> suggest(TrialId trial, std::uint64_t seed);

  /// Whether suggest() has asked for what has not been computed.
  bool wanted();

  // ---- By whoever works, one thread at a time

  /// Waits until there is something to do; false: nothing will be any more.
  bool wait();
  /// Tells the searcher what is new, and computes what is asked for. Whether there is an answer to fetch.
  bool work();
  /// The answer was on offer and nobody wants it now: it is computed again when somebody does and there is news.
  void not_wanted();

  /// Tells the searcher what it has not been told yet, closed or not.
  void tell_rest();

  // ---- Any thread

  /// wait() returns false from now on, and work() returns when the searcher does.
  void close();
  /// Whether no work is under way, or has come to an end within `seconds`.
  bool at_rest(double seconds);

 private:
  /// An Observation that owns what it says.
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
    std::uint64_t told;  // how many observations it knows of
    bool offered = false;
  };
  bool fresh(const Answer& answer) const;
  bool closed() const { return stop_.stop_requested(); }
  void tell_news(std::unique_lock<std::mutex>& guard, bool closed_too);
  Suggestion compute(TrialId trial, std::uint64_t seed);
  [[noreturn]] void rethrow_named() const;

  // Observations are cheap to keep and costly to learn from one by one: without a question they wait until they are
  // this many.
  static constexpr std::size_t max_news = 256;

  AnySearcher searcher_;  // of whoever works
  std::string name_;
  bool deferred_ = false;
  std::stop_source stop_;  // once nobody waits for a suggestion

  std::mutex mutex_;
  std::condition_variable work_, rest_;
  std::deque<Told> news_;
  std::uint64_t told_ = 0;
  std::optional<Wanted> wanted_;
  std::optional<Answer> answer_;
  std::exception_ptr error_, lost_;  // of the last question; for good, as the searcher was not told everything
  bool working_ = false;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/suggestions.hpp>
#endif
