// WorkerMachine: what a worker process does next, given what it was told. No I/O.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/worker_protocol.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// The worker's side of the protocol. Messages go in by receive(); the loop asks next() what to do, does it, and says
/// how it went by reported() or ended(). Not thread-safe.
class WorkerMachine {
 public:
  enum class Do : std::uint8_t {
    wait,   ///< for another message
    begin,  ///< the attempt that launch() describes
    step,   ///< after a save, if `save`
    park,   ///< keep the run and wait (after a save, if `save`); if not `keep` and it can save: save and end instead
    end,    ///< stop the attempt (after a save, if `save`)
    leave,  ///< the process is not needed any more
  };
  struct Action {
    Do what = Do::wait;
    bool save = false;
    bool keep = true;
  };

  /// Error of kind `protocol` if the message makes no sense now. Commands for an attempt that has ended meanwhile are
  /// ignored: they crossed its end on the way.
  void receive(const wire::Message& message) {
    detail::visit([this](const auto& m) { on(m); }, message);
  }

  Action next() {
    switch (phase_) {
      case Phase::greeting: return shutdown_ ? Action{.what = Do::leave} : Action{};
      case Phase::idle:
        if (shutdown_) return {.what = Do::leave};
        if (!pending_) return {};
        launch_ = std::move(*pending_);
        pending_.reset();
        answer_.reset();
        phase_ = Phase::running;
        begun_ = true;
        return {.what = Do::begin};
      case Phase::running:
        if (stop_) return {.what = Do::end, .save = stop_->save};
        return {.what = Do::step};
      case Phase::waiting: return after_report();
      case Phase::parked:
        if (stop_ || shutdown_) return {.what = Do::end};
        return {};
    }
    return {};
  }

  /// A report is about to be sent: the run waits for its answer.
  void reported() { phase_ = Phase::waiting; }
  /// The attempt is over, and the driver is about to be told.
  void ended() {
    phase_ = Phase::idle;
    begun_ = false;
    stop_.reset();
    answer_.reset();
  }

  bool greeted() const { return phase_ != Phase::greeting; }
  /// Whether an attempt is under way, or about to be.
  bool busy() const { return begun_ || pending_.has_value(); }
  bool stepping() const { return phase_ == Phase::running; }
  /// Whether the attempt under way has been asked to stop.
  bool stop_requested() const { return stop_.has_value() || shutdown_; }
  const Launch& launch() const { return launch_; }
  const wire::Welcome& welcome() const { return welcome_; }

 private:
  enum class Phase : std::uint8_t { greeting, idle, running, waiting, parked };

  Action after_report() {
    if (stop_) return {.what = Do::end, .save = stop_->save};
    if (shutdown_) return {.what = Do::end};
    if (!answer_) return {};
    const auto answer = *std::exchange(answer_, std::nullopt);
    if (const auto* go = std::get_if<Continue>(&answer)) {
      phase_ = Phase::running;
      return {.what = Do::step, .save = go->save};
    }
    const auto& order = std::get<wire::PauseOrder>(answer);
    phase_ = Phase::parked;
    return {.what = Do::park, .save = order.pause.save, .keep = order.keep};
  }

  template <class M>
  bool current(const M& m) const {
    return begun_ && m.trial == launch_.trial && m.attempt == launch_.attempt;
  }

  void on(const wire::Welcome& m) {
    if (phase_ != Phase::greeting) bad("a second Welcome");
    wire::require_version(m.version, "driver");
    welcome_ = m;
    phase_ = Phase::idle;
  }
  void on(const Launch& m) {
    if (phase_ == Phase::greeting) bad("a Launch before the Welcome");
    if (m.parked) {
      if (phase_ != Phase::parked || !current(m)) bad("a Launch of a parked attempt that is not here");
      launch_.allocation.lead = m.allocation.lead;
      answer_ = Continue{m.trial, m.attempt, false};
      phase_ = Phase::waiting;
      return;
    }
    if (phase_ != Phase::idle || pending_) bad("a Launch while an attempt is under way");
    pending_ = m;
  }
  void on(const Continue& m) {
    if (!current(m)) return;
    answer(m);
  }
  void on(const wire::PauseOrder& m) {
    if (!current(m.pause)) return;
    answer(m);
  }
  void on(const Stop& m) {
    if (current(m)) {
      stop_ = m;
    } else if (pending_ && pending_->trial == m.trial && pending_->attempt == m.attempt) {
      stop_ = m;  // begins, and ends before the first step
    }
  }
  void on(const wire::Shutdown&) { shutdown_ = true; }
  template <class M>
  void on(const M&) {
    bad("a message that only a worker sends");
  }

  template <class M>
  void answer(const M& m) {
    if (phase_ != Phase::waiting || answer_) bad("an answer, but no report waits for one");
    answer_ = m;
  }

  [[noreturn]] static void bad(const char* what) { fail(Errc::protocol, "the driver sent {}", what); }

  Phase phase_ = Phase::greeting;
  wire::Welcome welcome_;
  std::optional<Launch> pending_;
  Launch launch_;
  bool begun_ = false;
  std::optional<Stop> stop_;
  std::optional<std::variant<Continue, wire::PauseOrder>> answer_;
  bool shutdown_ = false;
};

}  // namespace hypertune::inline v0
