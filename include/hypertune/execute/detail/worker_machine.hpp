// WorkerMachine: decides what a worker process does next, given the messages received. No I/O.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/detail/attempt_machine.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// The worker's side of the protocol. Messages are passed to receive(); the loop asks next() what to do, does it, and
/// calls reported() or ended() with the outcome. Not thread-safe.
class WorkerMachine {
 public:
  using Do = AttemptMachine::Do;
  using Action = AttemptMachine::Action;

  /// Throws an Error of kind `protocol` if the message is not allowed now. Commands for an attempt that has ended are
  /// ignored: they were sent before its end was received.
  void receive(const wire::Message& message) {
    detail::visit([this](const auto& m) { on(m); }, message);
  }

  Action next() {
    if (!greeted_) return shutdown_ ? Action{.what = Do::leave} : Action{};
    if (!busy_) {
      if (shutdown_) return {.what = Do::leave};
      if (!pending_) return {};
      launch_ = std::move(*pending_);
      pending_.reset();
      attempt_ = {};
      busy_ = true;
      const Action begin = attempt_.next();
      // If it was stopped before it began, it begins, and ends before the first step.
      if (const auto stop = std::exchange(stop_, std::nullopt)) attempt_.on(*stop);
      return begin;
    }
    if (shutdown_ && !attempt_.stepping() && !attempt_.stop_requested()) return {.what = Do::end};
    return attempt_.next();
  }

  /// A report is about to be sent: the run waits for its answer.
  void reported() { attempt_.reported(); }
  /// The attempt is over, and the driver is about to be told.
  void ended() {
    attempt_.ended();
    busy_ = false;
  }

  bool greeted() const { return greeted_; }
  /// Whether an attempt is running or about to begin.
  bool busy() const { return busy_ || pending_.has_value(); }
  bool stepping() const { return busy_ && attempt_.stepping(); }
  /// Whether the running attempt was asked to stop with a checkpoint.
  bool save_requested() const { return busy_ && attempt_.save_requested(); }
  bool stop_requested() const { return stop_ || shutdown_ || (busy_ && attempt_.stop_requested()); }
  const Launch& launch() const { return launch_; }
  const wire::Welcome& welcome() const { return welcome_; }

 private:
  template <class M>
  bool current(const M& m) const {
    return busy_ && m.trial == launch_.trial && m.attempt == launch_.attempt;
  }

  void on(const wire::Welcome& m) {
    if (greeted_) bad("a second Welcome");
    wire::require_version(m.version, "driver");
    welcome_ = m;
    greeted_ = true;
  }
  void on(const Launch& m) {
    if (!greeted_) bad("a Launch before the Welcome");
    if (m.parked) {
      if (!current(m) || !attempt_.parked()) bad("a Launch of a parked attempt that is not here");
      launch_.allocation.lead = m.allocation.lead;
      return attempt_.resume();
    }
    if (busy_ || pending_) bad("a Launch while an attempt is under way");
    pending_ = m;
  }
  void on(const Continue& m) {
    if (!current(m)) return;
    require_report();
    attempt_.on(m);
  }
  void on(const Pause& m) {
    if (!current(m)) return;
    require_report();
    attempt_.on(m);
  }
  void on(const Stop& m) {
    if (current(m))
      attempt_.on(m);
    else if (pending_ && pending_->trial == m.trial && pending_->attempt == m.attempt)
      stop_ = m;
  }
  void on(const wire::Shutdown&) { shutdown_ = true; }
  void on(const GroupMessage&) {}  // goes to the trial's Group directly
  template <class M>
  void on(const M&) {
    bad("a message that only a worker sends");
  }

  void require_report() const {
    if (!attempt_.expects_answer()) bad("an answer, but no report waits for one");
  }

  [[noreturn]] static void bad(const char* what) { fail(Errc::protocol, "the driver sent {}", what); }

  bool greeted_ = false;
  wire::Welcome welcome_;
  std::optional<Launch> pending_;
  std::optional<Stop> stop_;  // a Stop of `pending_`
  Launch launch_;
  bool busy_ = false;  // with the attempt that launch_ describes
  AttemptMachine attempt_;
  bool shutdown_ = false;
};

}  // namespace hypertune::inline v0
