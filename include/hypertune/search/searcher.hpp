// The Searcher concept: proposes the next configuration.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/option.hpp>
#include <hypertune/random.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// Passed to a searcher once, before anything else.
struct SearchContext {
  std::size_t objectives = 1;   ///< number of losses in each observation
  std::size_t constraints = 0;  ///< number of learnt constraints in each observation
  std::int64_t samples = 0;     ///< number of suggestions that will be asked for; 0: unknown
  int parallelism = 1;          ///< approximate number of trials that run at once
  std::uint64_t seed = 0;
  std::function<void(const std::string&)> note = {};  ///< shows a line to the user; may be empty
};

/// A request for a suggestion. `rng` is derived from the experiment's seed and the trial's number.
struct Ask {
  TrialId trial;
  Rng& rng;
  std::stop_token stop = {};

  /// The experiment ends and the suggestion is no longer needed: a computation of seconds may check this now and then
  /// and return anything.
  bool cancelled() const { return stop.stop_requested(); }
};

/// A suggested point, or why there is none now.
struct Suggestion {
  enum class Kind : std::uint8_t { point, wait, exhausted };
  Kind kind = Kind::point;
  Point point;

  Suggestion(Point p) : point(std::move(p)) {}  // NOLINT: a point is a suggestion
  static Suggestion wait();                     ///< ask again after the next observation
  static Suggestion exhausted();                ///< there will never be another one

 private:
  explicit Suggestion(Kind k) : kind(k) {}
};

/// An event that a searcher learns from. Losses are to be minimised; +infinity is the worst, and stands for NaN too.
struct Observation {
  enum class Kind : std::uint8_t {
    started,  ///< the trial was created (its point may come from elsewhere: known points, an earlier run)
    report,   ///< an intermediate result after `steps` steps
    ended,    ///< the trial has ended; `state` tells how
  };
  Kind kind;
  TrialId trial;
  const Point& point;
  int steps = 0;                           ///< steps done so far
  std::span<const double> losses{};        ///< one per objective; empty for `started`
  std::span<const double> constraints{};   ///< one per learnt constraint: > 0 is violated by that much; NaN: unknown
  TrialState state = TrialState::running;  ///< with `ended`: completed, stopped or failed
  /// How long the trial had run at its last report, as recorded. 0: unknown, or not to be used because runs must be
  /// reproducible.
  Seconds elapsed = 0;

  double loss() const { return losses.empty() ? worst_loss : losses.front(); }
};

/// A Searcher is a plain single-threaded value. Its state must depend only on prepare() and the observations, and
/// suggest() must draw only from `ask.rng`. If the same observations are replayed after a restart, the searcher makes
/// the same further suggestions, so that searchers need no persistence of their own.
///
/// A minimal model:
/// ```cpp
/// struct AlwaysTheMiddle {
///   std::optional<ht::SearchSpace> space;
///   void prepare(const ht::SearchSpace& s, const ht::SearchContext&) { space = s; }
///   ht::Suggestion suggest(const ht::Ask& ask) { return space->from_unit(std::vector(space->size(), 0.5), ask.rng); }
///   void observe(const ht::Observation&) {}
/// };
/// ```
/// `static constexpr bool multi_objective = true;` says that it reads all of `losses`; otherwise several objectives are
/// refused. A `name()` is shown to the user and kept in the record. `bool covers_grid() const` says that it enumerates
/// the grid dimensions itself, so that the Tuner need not wrap it in mixed_grid(); `bool finite() const` says that it
/// will be exhausted, so that the number of samples may be left open. Its options (Described in option.hpp), and
/// `void check() const` for what the options cannot express, are evaluated when it becomes an AnySearcher.
///
/// A Tuner calls suggest() and observe() on a separate thread, one call at a time, so that no trial waits for a model.
/// `static constexpr bool cheap = true;` (or `bool cheap() const`, called after prepare()) says that they take
/// microseconds in any space; then they are called directly, without a change of threads. `bool quick() const` says
/// that of the next suggestion alone, and is asked before each.
template <class S>
concept Searcher = std::movable<S> && requires(S& searcher, const SearchSpace& space, const SearchContext& goal,
                                               const Ask& ask, const Observation& observation) {
  searcher.prepare(space, goal);
  { searcher.suggest(ask) } -> std::convertible_to<Suggestion>;
  searcher.observe(observation);
};

template <class S>
concept NamedAlgorithm = requires(const S& s) {
  { s.name() } -> std::convertible_to<std::string>;
};

template <class S>
constexpr bool is_multi_objective() {
  if constexpr (requires {
                  { S::multi_objective } -> std::convertible_to<bool>;
                })
    return S::multi_objective;
  return false;
}

namespace detail {

template <class S>
bool says_cheap(const S& searcher) {
  if constexpr (requires {
                  { searcher.cheap() } -> std::convertible_to<bool>;
                })
    return searcher.cheap();
  else if constexpr (requires {
                       { S::cheap } -> std::convertible_to<bool>;
                     })
    return S::cheap;
  else
    return false;
}

template <class S>
bool says_quick(const S& searcher) {
  if constexpr (requires {
                  { searcher.quick() } -> std::convertible_to<bool>;
                })
    return searcher.quick();
  else
    return says_cheap(searcher);
}

template <class S>
bool reads_all_losses(const S& searcher) {
  if constexpr (requires {
                  { searcher.multi_objective() } -> std::convertible_to<bool>;
                })
    return searcher.multi_objective();
  else
    return is_multi_objective<S>();
}

}  // namespace detail

/// Holds any Searcher by value.
class AnySearcher {
 public:
  template <class S>
    requires(!std::same_as<S, AnySearcher> && Searcher<S>)
  AnySearcher(S searcher) {  // NOLINT: implicit on purpose
    detail::need_part_of<S>();
    check_options(searcher);
    self_ = std::make_unique<Holder<S>>(std::move(searcher));
  }
  /// Explains what is missing; otherwise the compiler would only report that no tune() matches these options.
  template <class S>
    requires(!std::same_as<S, AnySearcher> && !Searcher<S>)
  AnySearcher(const S&) {  // NOLINT
    if constexpr (!std::is_class_v<S>) {
      static_assert(
          std::is_class_v<S>,
          "hypertune: this is no searcher: write ht::Auto{}, ht::Tpe{}, ht::Random{}, … (an object, no name)");
    } else {
      static_assert(
          requires(S& s, const SearchSpace& space, const SearchContext& goal) { s.prepare(space, goal); },
          "hypertune: a Searcher needs prepare(const ht::SearchSpace&, const ht::SearchContext&)");
      static_assert(
          requires(S& s, const Ask& ask) {
            { s.suggest(ask) } -> std::convertible_to<Suggestion>;
          }, "hypertune: a Searcher needs suggest(const ht::Ask&) returning an ht::Suggestion");
      static_assert(
          requires(S& s, const Observation& observation) { s.observe(observation); },
          "hypertune: a Searcher needs observe(const ht::Observation&)");
      static_assert(std::movable<S>, "hypertune: a Searcher must be movable");
    }
  }
  AnySearcher(const AnySearcher& other);
  AnySearcher(AnySearcher&& other) noexcept;
  AnySearcher& operator=(AnySearcher other) noexcept;
  ~AnySearcher();

  void prepare(const SearchSpace& space, const SearchContext& goal) { self_->prepare(space, goal); }
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& observation) { self_->observe(observation); }
  bool multi_objective() const { return self_->multi_objective(); }
  bool covers_grid() const { return self_->covers_grid(); }
  bool finite() const { return self_->finite(); }
  bool cheap() const { return self_->cheap(); }
  bool quick() const { return self_->quick(); }
  std::string name() const;
  /// Its options_text().
  std::string options() const;

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual std::unique_ptr<Interface> clone() const = 0;
    virtual void prepare(const SearchSpace&, const SearchContext&) = 0;
    virtual Suggestion suggest(const Ask&) = 0;
    virtual void observe(const Observation&) = 0;
    virtual bool multi_objective() const = 0;
    virtual bool covers_grid() const = 0;
    virtual bool finite() const = 0;
    virtual bool cheap() const = 0;
    virtual bool quick() const = 0;
    virtual std::string name() const = 0;
    virtual std::string options() const = 0;
  };
  template <class S>
  struct Holder final : Interface {
    explicit Holder(S s) : searcher(std::move(s)) {}
    std::unique_ptr<Interface> clone() const override {
      if constexpr (std::copy_constructible<S>)
        return std::make_unique<Holder>(searcher);
      else
        fail(Errc::usage, "this searcher cannot be copied: move the options instead");
    }
    void prepare(const SearchSpace& space, const SearchContext& goal) override { searcher.prepare(space, goal); }
    Suggestion suggest(const Ask& ask) override { return searcher.suggest(ask); }
    void observe(const Observation& o) override { searcher.observe(o); }
    bool multi_objective() const override { return detail::reads_all_losses(searcher); }
    bool covers_grid() const override {
      if constexpr (requires { searcher.covers_grid(); })
        return searcher.covers_grid();
      else
        return false;
    }
    bool finite() const override {
      if constexpr (requires { searcher.finite(); })
        return searcher.finite();
      else
        return false;
    }
    bool cheap() const override { return detail::says_cheap(searcher); }
    bool quick() const override { return detail::says_quick(searcher); }
    std::string options() const override { return options_text(searcher); }
    std::string name() const override {
      if constexpr (NamedAlgorithm<S>)
        return searcher.name();
      else if constexpr (Described<S>)
        return S::type;
      else
        return "custom";
    }
    S searcher;
  };
  std::unique_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
