// The Scheduler concept: decides at each report whether a trial continues.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/error.hpp>
#include <hypertune/option.hpp>
#include <hypertune/schedule/reason.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// A scheduler's answer to a report.
enum class Decision : std::uint8_t {
  proceed,   ///< train the next step
  pause,     ///< keep the trial's state, free its slot; choose_next() may resume it
  stop,      ///< end the trial early: it is not worth more steps
  complete,  ///< end the trial: it has made all the steps that it may make
};

constexpr const char* to_string(Decision decision) {
  switch (decision) {
    case Decision::proceed: return "continue";
    case Decision::pause: return "pause";
    case Decision::stop: return "stop";
    case Decision::complete: return "complete";
  }
  return "unknown";
}

/// A report as a scheduler sees it. Losses are to be minimised; +infinity is the worst, and also stands for NaN.
struct Progress {
  TrialId trial;
  int steps;                       ///< steps done, including this one: 1 at the first report
  std::span<const double> losses;  ///< of this report, one per objective
  Seconds elapsed = 0;             ///< how long the trial has run, all attempts together
  Seconds now = 0;                 ///< how long the experiment has run, all sessions together
  /// The trial's program has ended, and its remaining reports follow: it is compared with others as usual, but goes on
  /// to its last report, or until it is complete. A scheduler that pauses trials must not take it for paused.
  bool over = false;
  double loss() const { return losses.empty() ? worst_loss : losses.front(); }
};

/// The state of the pool when a slot becomes free.
struct Pool {
  std::size_t running = 0;  ///< running trials
  std::size_t paused = 0;   ///< trials that the scheduler has paused
  bool more_trials = true;  ///< whether the searcher may still propose a new trial
  Seconds now = 0;          ///< how long the experiment has run, all sessions together
};

/// What to do with a free slot.
struct Choice {
  enum class Kind : std::uint8_t { start_new, resume, stop, wait, exploit };
  Kind kind = Kind::start_new;
  TrialId trial = -1;
  TrialId donor = -1;                                            ///< with exploit
  Point point = {};                                              ///< with exploit
  int steps = 0;                                                 ///< with exploit, see there
  static Choice start_new() { return {}; }                       ///< ask the searcher for a new trial
  static Choice resume(TrialId t) { return {Kind::resume, t}; }  ///< resume a paused trial
  static Choice stop(TrialId t) { return {Kind::stop, t}; }      ///< end a paused trial; then asked again
  /// Resume a paused trial with the configuration `point`, from the state that `donor` (another trial, or itself) saved
  /// at its last pause; if that is gone, from the donor's newest checkpoint. With `steps`: from the state that the
  /// donor saved when it paused after `steps` steps; if that is gone, from its newest checkpoint of no more steps. If
  /// the donor has none, the trial is resumed unchanged.
  static Choice exploit(TrialId t, TrialId donor, Point point, int steps = 0) {
    return {Kind::exploit, t, donor, std::move(point), steps};
  }
  static Choice wait() { return {Kind::wait, -1}; }  ///< leave the slot empty until the next event
};

/// A Scheduler is a plain single-threaded value whose state depends only on the calls made to it; after a restart they
/// are replayed. It must not use a clock or random numbers of its own. Only on_report() is required:
/// ```cpp
/// struct StopTheHopeless {
///   ht::Decision on_report(const ht::Progress& p) {
///     return p.loss() > 0.9 ? ht::Decision::stop : ht::Decision::proceed;
///   }
/// };
/// ```
/// It may have:
/// - `void prepare(const SearchSpace&, std::uint64_t seed)`: called once, before anything else, for a scheduler that
///   makes configurations; it must draw from derived_rng(seed, {…}), derived from the event at hand;
/// - `void on_create(TrialId)` or `void on_create(TrialId, const Point&)`: a trial was created; before its first step;
/// - `void on_pause(TrialId)`: a trial has paused as told: its slot is free, and its state is saved if needed;
/// - `void on_exploit(TrialId, TrialId donor, const Point&)`, or with `int steps` as well: a paused trial has taken
///   over the donor's checkpoint (of that number of steps), as choose_next() decided; on_resume() follows;
/// - `void on_resume(TrialId)`: a paused trial is resumed (also during replay, so that choose_next() may be const);
/// - `void on_end(TrialId, TrialState)`: a trial has ended, for whatever reason;
/// - `Choice choose_next(const Pool&)`: what to do with a free slot (default: start a new trial). If it answers `wait`
///   while nothing runs, or `start_new` when there are no more trials, the paused trials are stopped, so that every
///   experiment ends;
/// - `describe()`, its options (Described in option.hpp), and `void check() const` for what the options cannot express:
///   both are evaluated when it becomes an AnyScheduler, so that a mistake shows before anything runs;
/// - `int max_steps`, a member or a function: the steps after which it completes a trial (0: no limit).
/// - `std::string why(TrialId, const LossText&) const` or `std::string why(TrialId) const`: why it stops the trial.
///   Called directly after that decision, and at the end for the paused trials that were not resumed. The text follows
///   the scheduler's name: "at rung 3 (9 steps): accuracy 0.71, needed 0.83". Must depend only on the calls, too;
/// - `static constexpr bool exploits = true;` if it makes trials continue from each other's checkpoints. Then each
///   pause is saved, whatever Options::checkpoint says, and the states of donors are kept while they are needed: of
///   each trial the one of its last pause, or, with `bool may_give(TrialId, int steps) const`, the one that it saved
///   when it paused after `steps` steps, as long as that function returns true;
/// - `static constexpr bool multi_objective = true;` if it reads all losses; a `name()`.
template <class S>
concept Scheduler = std::movable<S> && requires(S& scheduler, const Progress& progress) {
  { scheduler.on_report(progress) } -> std::same_as<Decision>;
};

/// Holds any Scheduler by value, with defaults for the optional functions.
class AnyScheduler {
 public:
  template <class S>
    requires(!std::same_as<S, AnyScheduler> && Scheduler<S>)
  AnyScheduler(S scheduler)
  // NOLINT: implicit on purpose
  {
    detail::need_part_of<S>();
    check_options(scheduler);
    self_ = std::make_unique<Holder<S>>(std::move(scheduler));
  }
  /// Explains what is missing; otherwise the compiler would only report that no tune() matches these options.
  template <class S>
    requires(!std::same_as<S, AnyScheduler> && !Scheduler<S>)
  AnyScheduler(const S&) {  // NOLINT
    if constexpr (!std::is_class_v<S>)
      static_assert(
          std::is_class_v<S>,
          "hypertune: this is no scheduler: write ht::Asha{.max_steps = 81}, ht::Fifo{}, … (an object, no name)");
    else
      static_assert(Scheduler<S>,
                    "hypertune: a Scheduler needs ht::Decision on_report(const ht::Progress&), and must be movable");
  }
  AnyScheduler(const AnyScheduler& other);
  AnyScheduler(AnyScheduler&& other) noexcept;
  AnyScheduler& operator=(AnyScheduler other) noexcept;
  ~AnyScheduler();

  Decision on_report(const Progress& progress) { return self_->on_report(progress); }
  void prepare(const SearchSpace& space, std::uint64_t seed) { self_->prepare(space, seed); }
  void on_create(TrialId trial, const Point& point = {}) { self_->on_create(trial, point); }
  void on_pause(TrialId trial) { self_->on_pause(trial); }
  /// `steps`: of the checkpoint that was taken over.
  void on_exploit(TrialId trial, TrialId donor, const Point& point, int steps) {
    self_->on_exploit(trial, donor, point, steps);
  }
  void on_resume(TrialId trial) { self_->on_resume(trial); }
  void on_end(TrialId trial, TrialState state) { self_->on_end(trial, state); }
  Choice choose_next(const Pool& pool);
  int max_steps() const { return self_->max_steps(); }
  /// Why it stops the trial, as text that follows its name; empty if it gives no reason.
  std::string why(TrialId trial, const LossText& losses) const;
  bool exploits() const { return self_->exploits(); }
  /// Whether the state that the trial saved when it paused after `steps` steps may still be needed. `last`: whether
  /// that was its last pause.
  bool may_give(TrialId trial, int steps, bool last) const { return self_->may_give(trial, steps, last); }
  bool multi_objective() const { return self_->multi_objective(); }
  std::string name() const;
  /// Its options_text().
  std::string options() const;

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual std::unique_ptr<Interface> clone() const = 0;
    virtual Decision on_report(const Progress&) = 0;
    virtual void prepare(const SearchSpace&, std::uint64_t) = 0;
    virtual void on_create(TrialId, const Point&) = 0;
    virtual void on_pause(TrialId) = 0;
    virtual void on_exploit(TrialId, TrialId, const Point&, int) = 0;
    virtual void on_resume(TrialId) = 0;
    virtual void on_end(TrialId, TrialState) = 0;
    virtual Choice choose_next(const Pool&) = 0;
    virtual int max_steps() const = 0;
    virtual std::string why(TrialId, const LossText&) const = 0;
    virtual bool exploits() const = 0;
    virtual bool may_give(TrialId, int, bool) const = 0;
    virtual bool multi_objective() const = 0;
    virtual std::string name() const = 0;
    virtual std::string options() const = 0;
  };
  template <class S>
  struct Holder final : Interface {
    explicit Holder(S s) : scheduler(std::move(s)) {}
    std::unique_ptr<Interface> clone() const override {
      if constexpr (std::copy_constructible<S>)
        return std::make_unique<Holder>(scheduler);
      else
        fail(Errc::usage, "this scheduler cannot be copied: move the options instead");
    }
    Decision on_report(const Progress& p) override { return scheduler.on_report(p); }
    void prepare([[maybe_unused]] const SearchSpace& space, [[maybe_unused]] std::uint64_t seed) override {
      if constexpr (requires { scheduler.prepare(space, seed); }) scheduler.prepare(space, seed);
    }
    void on_create(TrialId t, [[maybe_unused]] const Point& point) override {
      if constexpr (requires { scheduler.on_create(t, point); })
        scheduler.on_create(t, point);
      else if constexpr (requires { scheduler.on_create(t); })
        scheduler.on_create(t);
    }
    void on_pause([[maybe_unused]] TrialId t) override {
      if constexpr (requires { scheduler.on_pause(t); }) scheduler.on_pause(t);
    }
    void on_exploit(TrialId t, TrialId donor, const Point& point, [[maybe_unused]] int steps) override {
      if constexpr (requires { scheduler.on_exploit(t, donor, point, steps); })
        scheduler.on_exploit(t, donor, point, steps);
      else if constexpr (requires { scheduler.on_exploit(t, donor, point); })
        scheduler.on_exploit(t, donor, point);
    }
    void on_resume(TrialId t) override {
      if constexpr (requires { scheduler.on_resume(t); }) scheduler.on_resume(t);
    }
    void on_end(TrialId t, TrialState s) override {
      if constexpr (requires { scheduler.on_end(t, s); }) scheduler.on_end(t, s);
    }
    Choice choose_next(const Pool& pool) override {
      if constexpr (requires { scheduler.choose_next(pool); })
        return scheduler.choose_next(pool);
      else
        return Choice::start_new();
    }
    int max_steps() const override {
      if constexpr (requires { scheduler.max_steps(); })
        return scheduler.max_steps();
      else if constexpr (requires { int{scheduler.max_steps}; })
        return scheduler.max_steps;
      else
        return 0;
    }
    std::string why([[maybe_unused]] TrialId t, [[maybe_unused]] const LossText& losses) const override {
      if constexpr (requires { scheduler.why(t, losses); })
        return scheduler.why(t, losses);
      else if constexpr (requires { scheduler.why(t); })
        return scheduler.why(t);
      else
        return {};
    }
    bool exploits() const override {
      if constexpr (requires {
                      { S::exploits } -> std::convertible_to<bool>;
                    })
        return S::exploits;
      else
        return false;
    }
    bool may_give(TrialId t, [[maybe_unused]] int steps, [[maybe_unused]] bool last) const override {
      if constexpr (requires {
                      { scheduler.may_give(t, steps) } -> std::convertible_to<bool>;
                    })
        return scheduler.may_give(t, steps);
      else
        return last;
    }
    bool multi_objective() const override {
      if constexpr (requires {
                      { S::multi_objective } -> std::convertible_to<bool>;
                    })
        return S::multi_objective;
      else
        return false;
    }
    std::string options() const override { return options_text(scheduler); }
    std::string name() const override {
      if constexpr (requires {
                      { scheduler.name() } -> std::convertible_to<std::string>;
                    })
        return scheduler.name();
      else if constexpr (Described<S>)
        return S::type;
      else
        return "custom";
    }
    S scheduler;
  };
  std::unique_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
