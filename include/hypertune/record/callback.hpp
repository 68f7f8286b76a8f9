// Callbacks: user code and loggers that follow an experiment, a batch of committed records at a time.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/record/record.hpp>

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

/// The name of a type as it is written in a program.
std::string name_of(const std::type_info& type);

// A hook may take the event alone, or the event and its time.
#define HYPERTUNE_HOOK(hook, Event)                                                                 \
  template <class C>                                                                                \
  concept has_##hook = requires(C& c, const Event& event, Seconds time) { c.hook(event, time); } || \
                       requires(C& c, const Event& event) { c.hook(event); };                       \
  template <class C>                                                                                \
  void call_##hook(C& c, const Event& event, Seconds time) {                                        \
    if constexpr (requires { c.hook(event, time); })                                                \
      c.hook(event, time);                                                                          \
    else if constexpr (requires { c.hook(event); })                                                 \
      c.hook(event);                                                                                \
    else                                                                                            \
      static_assert(                                                                                \
          !requires { &C::hook; },                                                                  \
          "this callback's " #hook " cannot be called: it must take (const hypertune::" #Event      \
          "&) or (const hypertune::" #Event "&, hypertune::Seconds)");                              \
  }
HYPERTUNE_HOOK(on_experiment_start, record::ExperimentStarted)
HYPERTUNE_HOOK(on_trial_create, record::TrialCreated)
HYPERTUNE_HOOK(on_trial_start, record::TrialStarted)
HYPERTUNE_HOOK(on_trial_resize, record::TrialResized)
HYPERTUNE_HOOK(on_workers_request, record::WorkersRequested)
HYPERTUNE_HOOK(on_trial_report, record::TrialReported)
HYPERTUNE_HOOK(on_trial_checkpoint, record::TrialCheckpointed)
HYPERTUNE_HOOK(on_checkpoint_drop, record::CheckpointDropped)
HYPERTUNE_HOOK(on_trial_pause, record::TrialPaused)
HYPERTUNE_HOOK(on_trial_exploit, record::TrialExploited)
HYPERTUNE_HOOK(on_trial_failure, record::AttemptFailed)
HYPERTUNE_HOOK(on_trial_end, record::TrialEnded)
HYPERTUNE_HOOK(on_host_gain, record::HostGained)
HYPERTUNE_HOOK(on_host_loss, record::HostLost)
HYPERTUNE_HOOK(on_attributes, record::AttributesSet)
HYPERTUNE_HOOK(on_experiment_end, record::ExperimentEnded)
#undef HYPERTUNE_HOOK

template <class C>
concept has_on_record = requires(C& c, const Record& record) { c.on_record(record); };
template <class C>
concept has_on_batch_end = requires(C& c) { c.on_batch_end(); };
template <class C>
concept has_on_open = requires(C& c, const std::filesystem::path& directory) { c.on_open(directory); };

}  // namespace detail

/// A Callback follows an experiment. It has at least one of these hooks:
/// ```cpp
/// struct Follower {
///   void on_open(const std::filesystem::path& directory);      // called once, first: the experiment's folder
///   void on_record(const ht::Record&);                         // every record, in order, before its own hook
///   void on_experiment_start(const ht::record::ExperimentStarted&, ht::Seconds time);  // `time` may be omitted,
///   void on_trial_create(const ht::record::TrialCreated&, ht::Seconds time);           // here and below
///   void on_trial_start(const ht::record::TrialStarted&, ht::Seconds time);
///   void on_trial_resize(const ht::record::TrialResized&, ht::Seconds time);           // its workers have changed
///   void on_workers_request(const ht::record::WorkersRequested&, ht::Seconds time);    // workers were requested
///   void on_trial_report(const ht::record::TrialReported&, ht::Seconds time);
///   void on_trial_checkpoint(const ht::record::TrialCheckpointed&, ht::Seconds time);
///   void on_checkpoint_drop(const ht::record::CheckpointDropped&, ht::Seconds time);
///   void on_trial_pause(const ht::record::TrialPaused&, ht::Seconds time);
///   void on_trial_exploit(const ht::record::TrialExploited&, ht::Seconds time);         // population based training
///   void on_trial_failure(const ht::record::AttemptFailed&, ht::Seconds time);         // of an attempt
///   void on_trial_end(const ht::record::TrialEnded&, ht::Seconds time);
///   void on_host_gain(const ht::record::HostGained&, ht::Seconds time);
///   void on_host_loss(const ht::record::HostLost&, ht::Seconds time);
///   void on_attributes(const ht::record::AttributesSet&, ht::Seconds time);             // of a trial or experiment
///   void on_experiment_end(const ht::record::ExperimentEnded&, ht::Seconds time);
///   void on_batch_end();                                       // after each batch: a good time to flush
///   std::string name() const;                                  // for notices; default: the name of the type
/// };
/// ```
/// A callback sees only committed records; they are never taken back, not even by a power cut. Its hooks run on one
/// thread (the Journal's writer), not on the thread that makes the decisions. If a callback stays slower than the
/// reports, the experiment waits for it. If a hook throws, a notice says so and the callback is disabled; the
/// experiment goes on.
template <class C>
concept Callback =
    detail::has_on_open<C> || detail::has_on_record<C> || detail::has_on_batch_end<C> ||
    detail::has_on_experiment_start<C> || detail::has_on_trial_create<C> || detail::has_on_trial_start<C> ||
    detail::has_on_trial_report<C> || detail::has_on_trial_checkpoint<C> || detail::has_on_checkpoint_drop<C> ||
    detail::has_on_trial_pause<C> || detail::has_on_trial_exploit<C> || detail::has_on_trial_failure<C> ||
    detail::has_on_trial_end<C> || detail::has_on_host_gain<C> || detail::has_on_host_loss<C> ||
    detail::has_on_attributes<C> || detail::has_on_trial_resize<C> || detail::has_on_workers_request<C> ||
    detail::has_on_experiment_end<C>;

namespace detail {

// Names that are close to a hook's name or are hooks of another library. Such a member would never be called.
#define HYPERTUNE_NO_HOOKS(X)                   \
  X(on_trial_reported, on_trial_report)         \
  X(on_result, on_trial_report)                 \
  X(on_trial_result, on_trial_report)           \
  X(on_step, on_trial_report)                   \
  X(on_trial_complete, on_trial_end)            \
  X(on_trial_completed, on_trial_end)           \
  X(on_trial_finish, on_trial_end)              \
  X(on_trial_finished, on_trial_end)            \
  X(on_trial_stop, on_trial_end)                \
  X(on_trial_stopped, on_trial_end)             \
  X(on_trial_ended, on_trial_end)               \
  X(on_trial_started, on_trial_start)           \
  X(on_trial_begin, on_trial_start)             \
  X(on_trial_created, on_trial_create)          \
  X(on_trial_add, on_trial_create)              \
  X(on_trial_fail, on_trial_failure)            \
  X(on_trial_failed, on_trial_failure)          \
  X(on_trial_error, on_trial_failure)           \
  X(on_failure, on_trial_failure)               \
  X(on_checkpoint, on_trial_checkpoint)         \
  X(on_trial_checkpointed, on_trial_checkpoint) \
  X(on_trial_save, on_trial_checkpoint)         \
  X(on_checkpoint_dropped, on_checkpoint_drop)  \
  X(on_trial_paused, on_trial_pause)            \
  X(on_trial_mutate, on_trial_exploit)          \
  X(on_trial_mutated, on_trial_exploit)         \
  X(on_trial_mutation, on_trial_exploit)        \
  X(on_attribute, on_attributes)                \
  X(on_note, on_attributes)                     \
  X(on_attributes_set, on_attributes)           \
  X(on_host_gained, on_host_gain)               \
  X(on_host_add, on_host_gain)                  \
  X(on_host_lost, on_host_loss)                 \
  X(on_experiment_started, on_experiment_start) \
  X(on_experiment_begin, on_experiment_start)   \
  X(on_start, on_experiment_start)              \
  X(on_experiment_ended, on_experiment_end)     \
  X(on_experiment_finish, on_experiment_end)    \
  X(on_records, on_record)                      \
  X(on_event, on_record)                        \
  X(on_batch, on_batch_end)                     \
  X(on_opened, on_open)

template <class C>
constexpr void check_hook_names() {
#define HYPERTUNE_REFUSE(name, meant) \
  static_assert(!requires { &C::name; }, "hypertune: a callback has no hook " #name ": did you mean " #meant "?");
  HYPERTUNE_NO_HOOKS(HYPERTUNE_REFUSE)
#undef HYPERTUNE_REFUSE
}

/// Whether C has a member that is meant as a hook. Another static_assert then says what is wrong with it.
template <class C>
constexpr bool means_a_hook() {
#define HYPERTUNE_HAS(name, meant) || requires { &C::name; } || requires { &C::meant; }
  return requires { &C::on_report; } || requires { &C::on_end; } HYPERTUNE_NO_HOOKS(HYPERTUNE_HAS);
#undef HYPERTUNE_HAS
}
#undef HYPERTUNE_NO_HOOKS

template <class C>
struct CallbackOf {
  using type = C;
};
template <class C>
struct CallbackOf<std::reference_wrapper<C>> {
  using type = C;
};
template <class C>
struct CallbackOf<std::shared_ptr<C>> {
  using type = C;
};

template <class C>
void dispatch_record(C& callback, const Record& record) {
  if constexpr (has_on_record<C>)
    callback.on_record(record);
  else
    static_assert(!requires { &C::on_record; }, "this callback's on_record must take (const hypertune::Record&)");
  struct Visitor {
    C& c;
    Seconds time;
    void operator()(const record::ExperimentStarted& e) const { call_on_experiment_start(c, e, time); }
    void operator()(const record::TrialCreated& e) const { call_on_trial_create(c, e, time); }
    void operator()(const record::TrialStarted& e) const { call_on_trial_start(c, e, time); }
    void operator()(const record::TrialResized& e) const { call_on_trial_resize(c, e, time); }
    void operator()(const record::WorkersRequested& e) const { call_on_workers_request(c, e, time); }
    void operator()(const record::TrialReported& e) const { call_on_trial_report(c, e, time); }
    void operator()(const record::TrialCheckpointed& e) const { call_on_trial_checkpoint(c, e, time); }
    void operator()(const record::CheckpointDropped& e) const { call_on_checkpoint_drop(c, e, time); }
    void operator()(const record::TrialPaused& e) const { call_on_trial_pause(c, e, time); }
    void operator()(const record::TrialExploited& e) const { call_on_trial_exploit(c, e, time); }
    void operator()(const record::AttemptFailed& e) const { call_on_trial_failure(c, e, time); }
    void operator()(const record::TrialEnded& e) const { call_on_trial_end(c, e, time); }
    void operator()(const record::HostGained& e) const { call_on_host_gain(c, e, time); }
    void operator()(const record::HostLost& e) const { call_on_host_loss(c, e, time); }
    void operator()(const record::AttributesSet& e) const { call_on_attributes(c, e, time); }
    void operator()(const record::ExperimentEnded& e) const { call_on_experiment_end(c, e, time); }
  };
  detail::visit(Visitor{callback, record.time}, record.what);
}

}  // namespace detail

/// Holds any Callback. Copies share one callback, so that a list of them can be a member of an options struct. To
/// inspect a callback afterwards, pass it as `std::ref(callback)` (it must outlive the experiment) or as a
/// `std::shared_ptr`.
class AnyCallback {
 public:
  // Defined once, for all files.
  AnyCallback(const AnyCallback& other);
  AnyCallback(AnyCallback&& other) noexcept;
  AnyCallback& operator=(const AnyCallback& other);
  AnyCallback& operator=(AnyCallback&& other) noexcept;
  ~AnyCallback();

  template <class C>
    requires(!std::same_as<C, AnyCallback> && Callback<C>)
  AnyCallback(C callback)  // NOLINT: implicit on purpose
      : AnyCallback(std::make_shared<C>(std::move(callback))) {}
  /// Says what C lacks. Without this overload the compiler would only say that no tune() accepts these options.
  template <class C>
    requires(!std::same_as<C, AnyCallback> && !Callback<typename detail::CallbackOf<C>::type> &&
             !requires(const C& c) { c.begin(); })
  AnyCallback(const C&) {  // NOLINT
    using Own = typename detail::CallbackOf<C>::type;
    if constexpr (std::is_class_v<Own>) {
      detail::check_hook_names<Own>();
      static_cast<void>(&detail::dispatch_record<Own>);  // an error if a hook cannot be called
      // Schedulers have these members too, and a class may be both.
      static_assert(
          !requires { &Own::on_report; }, "hypertune: a callback has no hook on_report: did you mean on_trial_report?");
      static_assert(
          !requires { &Own::on_end; },
          "hypertune: a callback has no hook on_end: did you mean on_trial_end or on_experiment_end?");
    }
    static_assert(Callback<Own> || detail::means_a_hook<Own>(),
                  "hypertune: a callback needs a hook, such as void on_trial_report(const ht::record::TrialReported&); "
                  "record/callback.hpp lists them");
  }
  template <Callback C>
  AnyCallback(std::reference_wrapper<C> callback)  // NOLINT: implicit on purpose
      : AnyCallback(std::shared_ptr<C>(std::shared_ptr<void>(), &callback.get())) {}
  template <Callback C>
  AnyCallback(std::shared_ptr<C> callback)  // NOLINT: implicit on purpose
      : self_(std::make_shared<Holder<C>>(std::move(callback))) {
    detail::check_hook_names<C>();
  }

  /// Tells the callback the experiment's folder. Called once, before the first batch.
  void open(const std::filesystem::path& directory) { self_->open(directory); }
  /// Passes on a committed batch. Throws what the callback throws.
  void batch(std::span<const Record> records) { self_->batch(records); }
  std::string name() const { return self_->name(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual void open(const std::filesystem::path&) = 0;
    virtual void batch(std::span<const Record>) = 0;
    virtual std::string name() const = 0;
  };
  template <class C>
  struct Holder final : Interface {
    explicit Holder(std::shared_ptr<C> c) : callback(std::move(c)) {}
    void open(const std::filesystem::path& directory) override {
      if constexpr (detail::has_on_open<C>) callback->on_open(directory);
    }
    void batch(std::span<const Record> records) override {
      for (const Record& record : records) detail::dispatch_record(*callback, record);
      if constexpr (detail::has_on_batch_end<C>) callback->on_batch_end();
    }
    std::string name() const override {
      if constexpr (requires {
                      { callback->name() } -> std::convertible_to<std::string>;
                    })
        return callback->name();
      else
        return detail::name_of(typeid(C));
    }
    std::shared_ptr<C> callback;
  };
  std::shared_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
