// The Trainable concepts: the forms in which users can write a trial, and how each becomes a Program.
#pragma once

#include <hypertune/trial/program.hpp>
#include <hypertune/trial/training.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// What a step or a function may return: a Report, Metrics, or a number that becomes the metric being tuned.
template <class R>
concept Reportable = std::convertible_to<R, Report> || std::same_as<std::remove_cvref_t<R>, Metrics> ||
                     std::is_arithmetic_v<std::remove_cvref_t<R>>;

/// A callable that takes the configuration and, optionally, the Context.
template <class F, class Config>
concept TrialCallable = std::invocable<F&, Config&, Context&> || std::invocable<F&, Config&>;

namespace detail {

template <class F, class Config>
decltype(auto) call_trial(F& f, Config& config, Context& context) {
  if constexpr (std::invocable<F&, Config&, Context&>)
    return std::invoke(f, config, context);
  else
    return std::invoke(f, config);
}

template <class F, class Config>
using trial_result = decltype(call_trial(std::declval<F&>(), std::declval<Config&>(), std::declval<Context&>()));

template <class R>
Report to_report(R&& value, const std::string& metric) {
  using V = std::remove_cvref_t<R>;
  if constexpr (std::convertible_to<R, Report>)
    return Report(std::forward<R>(value));
  else if constexpr (std::same_as<V, Metrics>)
    return Report(std::forward<R>(value));
  else
    return report(metric, static_cast<double>(value));
}

template <class T>
struct unwrap_optional : std::false_type {
  using type = T;
};
template <class T>
struct unwrap_optional<std::optional<T>> : std::true_type {
  using type = T;
};

}  // namespace detail

/// 1. A trial as a coroutine: `Training train(Config, Context&)` or `Training train(Config)`; co_yields reports.
template <class F, class Config>
concept CoroutineTrainable = TrialCallable<F, Config> && std::same_as<detail::trial_result<F, Config>, Training>;

/// 2. A trial as a plain function of the configuration that returns the result.
template <class F, class Config>
concept FunctionTrainable = TrialCallable<F, Config> && Reportable<detail::trial_result<F, Config>>;

/// 3. A trial as a class. The constructor sets the trial up, the destructor ends it.
/// ```cpp
/// struct Trainer {
///   explicit Trainer(const Config&);                       // or (const Config&, ht::Context&)
///   ht::Report step();                                     // or a number; std::optional of either: nullopt ends the
///                                                          // trial
///   void save(ht::CheckpointWriter& out) const;            // optional, with restore()
///   void restore(const ht::Checkpoint& in);
///   bool reset(const Config&);                             // optional: switch to another trial; false: it cannot, so
///                                                          // a new object is made. Or (const Config&, ht::Context&):
///                                                          // an earlier Context no longer exists then
/// };
/// ```
template <class T, class Config>
concept ClassTrainable =
    (std::constructible_from<T, const Config&> || std::constructible_from<T, const Config&, Context&>) &&
    requires(T& t) { t.step(); };

template <class T>
concept Savable = requires(T& t, CheckpointWriter& out, const Checkpoint& in) {
  t.save(out);
  t.restore(in);
};

template <class T, class Config>
concept ResettableWithContext = requires(T& t, const Config& config, Context& context) {
  { t.reset(config, context) } -> std::convertible_to<bool>;
};
template <class T, class Config>
concept Resettable = ResettableWithContext<T, Config> || requires(T& t, const Config& config) {
  { t.reset(config) } -> std::convertible_to<bool>;
};

namespace detail {

template <class F, class Config>
class CoroutineRun final : public TrialRun {
 public:
  CoroutineRun(F& f, Config config, Context& context)
      : context_(context), config_(std::move(config)), training_(call_trial(f, config_, context)) {}
  std::optional<Report> step() override { return training_.next(); }
  bool can_save() const override { return context_.can_save(); }
  void save(CheckpointWriter& out) override { context_.save(out); }

 private:
  Context& context_;
  Config config_;  // outlives the frame, so that a coroutine may take it by reference
  Training training_;
};

template <class F, class Config>
class FunctionRun final : public TrialRun {
  using Decode = std::function<Config(const Point&)>;

 public:
  FunctionRun(F& f, const Decode& decode, Context& context, const std::string& metric)
      : f_(f), decode_(decode), context_(&context), config_(decode(context.point())), metric_(metric) {}
  std::optional<Report> step() override {
    if (done_) return std::nullopt;
    done_ = true;
    return to_report(call_trial(f_, config_, *context_), metric_);
  }
  bool can_save() const override { return false; }  // there is only one step
  void save(CheckpointWriter&) override {}
  bool reset(Context& context) override {
    config_ = decode_(context.point());
    context_ = &context;
    done_ = false;
    return true;
  }

 private:
  F& f_;
  const Decode& decode_;
  Context* context_;
  Config config_;
  const std::string& metric_;
  bool done_ = false;
};

template <class T, class Config>
class ClassRun final : public TrialRun {
  using Decode = std::function<Config(const Point&)>;

 public:
  ClassRun(const Decode& decode, Context& context, const std::string& metric)
      : decode_(decode), metric_(metric), config_(decode(context.point())) {
    construct(context);
    if (context.restore()) {
      if constexpr (Savable<T>) trainer_->restore(*context.restore());
    }
  }
  std::optional<Report> step() override {
    if constexpr (unwrap_optional<std::remove_cvref_t<decltype(trainer_->step())>>::value) {
      auto result = trainer_->step();
      if (!result) return std::nullopt;
      return to_report(std::move(*result), metric_);
    } else {
      return to_report(trainer_->step(), metric_);
    }
  }
  bool can_save() const override { return Savable<T>; }
  void save([[maybe_unused]] CheckpointWriter& out) override {
    if constexpr (Savable<T>) trainer_->save(out);
  }
  bool reset([[maybe_unused]] Context& context) override {
    if constexpr (Resettable<T, Config>) {
      Config next = decode_(context.point());
      bool done = false;
      if constexpr (ResettableWithContext<T, Config>)
        done = trainer_->reset(std::as_const(next), context);
      else
        done = trainer_->reset(std::as_const(next));
      if (!done) return false;
      config_ = std::move(next);
      if constexpr (Savable<T>) {
        if (context.restore()) trainer_->restore(*context.restore());
      }
      return true;
    } else {
      return false;
    }
  }

 private:
  void construct(Context& context) {
    if constexpr (std::constructible_from<T, const Config&, Context&>)
      trainer_ = std::make_unique<T>(std::as_const(config_), context);
    else
      trainer_ = std::make_unique<T>(std::as_const(config_));
  }
  const Decode& decode_;
  const std::string& metric_;
  Config config_;
  std::unique_ptr<T> trainer_;
};

template <class Config, class F>
class CallableProgram final : public Program {
 public:
  CallableProgram(std::function<Config(const Point&)> decode, F f, std::string metric)
      : decode_(std::move(decode)), f_(std::move(f)), metric_(std::move(metric)) {}
  std::unique_ptr<TrialRun> begin(Context& context) const override {
    if constexpr (CoroutineTrainable<F, Config>)
      return std::make_unique<CoroutineRun<F, Config>>(f_, decode_(context.point()), context);
    else
      return std::make_unique<FunctionRun<F, Config>>(f_, decode_, context, metric_);
  }
  bool reusable() const override { return FunctionTrainable<F, Config>; }

 private:
  std::function<Config(const Point&)> decode_;
  mutable F f_;  // called from several threads at once, as documented for tune()
  std::string metric_;
};

template <class Config, class T>
class ClassProgram final : public Program {
 public:
  ClassProgram(std::function<Config(const Point&)> decode, std::string metric)
      : decode_(std::move(decode)), metric_(std::move(metric)) {}
  std::unique_ptr<TrialRun> begin(Context& context) const override {
    return std::make_unique<ClassRun<T, Config>>(decode_, context, metric_);
  }
  bool reusable() const override { return Resettable<T, Config>; }
  bool keeps() const override { return Resettable<T, Config>; }

 private:
  std::function<Config(const Point&)> decode_;
  std::string metric_;
};

}  // namespace detail

/// The Program of a callable trial (coroutine or function). `decode` converts a point to the configuration; `metric` is
/// the name for a bare number. The callable is shared by all trials and called from several threads at once: what it
/// captures must allow that.
template <class Config, class F>
std::shared_ptr<const Program> make_program(std::function<Config(const Point&)> decode, F f, std::string metric) {
  static_assert(TrialCallable<F, Config>,
                "hypertune: a trial is called with the Config (and optionally a Context&); this callable takes neither "
                "(Config) nor (Config, ht::Context&)");
  if constexpr (TrialCallable<F, Config>) {
    static_assert(CoroutineTrainable<F, Config> || FunctionTrainable<F, Config>,
                  "hypertune: a trial must return ht::Training (a coroutine that co_yields reports), or an ht::Report, "
                  "ht::Metrics or a number (a plain function)");
    return std::make_shared<detail::CallableProgram<Config, F>>(std::move(decode), std::move(f), std::move(metric));
  }
}

/// The Program of a class trial.
template <class Config, class T>
std::shared_ptr<const Program> make_class_program(std::function<Config(const Point&)> decode, std::string metric) {
  static_assert(
      std::constructible_from<T, const Config&> || std::constructible_from<T, const Config&, Context&>,
      "hypertune: Trainable: the class needs a constructor from (const Config&) or (const Config&, ht::Context&)");
  static_assert(requires(T& t) { t.step(); }, "hypertune: Trainable: the class needs a member step()");
  if constexpr (ClassTrainable<T, Config>) {
    using Step = std::remove_cvref_t<decltype(std::declval<T&>().step())>;
    static_assert(Reportable<typename detail::unwrap_optional<Step>::type>,
                  "hypertune: Trainable: step() must return ht::Report (or a number), or std::optional of it");
    static_assert(Savable<T> == (requires(T& t, CheckpointWriter& out) { t.save(out); }),
                  "hypertune: Trainable: save(ht::CheckpointWriter&) and restore(const ht::Checkpoint&) come together");
    return std::make_shared<detail::ClassProgram<Config, T>>(std::move(decode), std::move(metric));
  }
}

}  // namespace hypertune::inline v0
