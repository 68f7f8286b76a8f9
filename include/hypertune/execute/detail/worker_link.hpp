// WorkerLink: the driver's view of one worker process. No I/O.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// What the driver of a worker has to do after an event, in this order.
struct LinkActions {
  std::vector<wire::Message> send;
  std::vector<Event> events;
  bool kill = false;  ///< kill the process, and call exited() when it is gone
};

struct LinkOptions {
  Seconds hang_timeout = 0;  ///< seconds without a report or alive() until an attempt counts as hung; 0: no limit
  Seconds stop_grace = 5;    ///< seconds between a Stop within a step and the kill
  /// For members of a group: seconds without any message of the process, which sends signs of life while it computes,
  /// until it counts as lost. (The other members report a late one themselves, if any of them runs.) 0: no limit.
  Seconds silence_timeout = 60;
  bool prints = false;    ///< an external command: its output counts as sign of life
  bool reusable = false;  ///< whether the process can run another attempt
  wire::Welcome welcome = {};
};

/// The driver's side of the protocol for one worker. The functions that return LinkActions are told what happened and
/// return what to do. If the process ends with its attempt, the attempt's last event is held back until the process is
/// gone, so that a slot is reported free only when its memory is free. Not thread-safe.
class WorkerLink {
 public:
  explicit WorkerLink(LinkOptions options) : options_(std::move(options)) {}

  enum class State : std::uint8_t { greeting, idle, running, waiting, parked, leaving, gone };
  State state() const { return state_; }
  /// Whether a Launch is possible. During the greeting it is possible too: the Launch is sent after the greeting.
  bool free() const { return (state_ == State::idle || state_ == State::greeting) && !launch_; }
  bool fresh() const { return !used_; }
  const Launch* launch() const { return launch_ ? &*launch_ : nullptr; }

  LinkActions start(Launch launch, Seconds now) {
    LinkActions out;
    if (launch.parked) {
      if (state_ != State::parked) fail(Errc::usage, "trial {} is not parked here", launch.trial);
      launch_->allocation.lead = launch.allocation.lead;
      state_ = State::running;
      out.send.emplace_back(std::move(launch));
    } else {
      if (!free()) fail(Errc::usage, "the worker is not free for trial {}", launch.trial);
      used_ = true;
      launch_ = std::move(launch);
      if (state_ == State::idle) send_launch(out);
    }
    sign_of_life(now);
    return out;
  }

  /// Continue, Pause, Stop or GroupMessage for the present attempt. `keep`: whether there is room for a paused
  /// run in memory.
  LinkActions perform(const Command& command, bool keep, Seconds now) {
    LinkActions out;
    if (const auto* go = std::get_if<Continue>(&command); go != nullptr && state_ == State::waiting) {
      state_ = State::running;
      sign_of_life(now);
      out.send.emplace_back(*go);
    } else if (const auto* pause = std::get_if<Pause>(&command); pause != nullptr && state_ == State::waiting) {
      state_ = State::running;
      sign_of_life(now);
      Pause order = *pause;
      order.keep &= keep;
      out.send.emplace_back(order);
    } else if (const auto* stop = std::get_if<Stop>(&command)) {
      on_stop(*stop, now, out);
    } else if (const auto* group = std::get_if<GroupMessage>(&command)) {
      if (state_ == State::running || state_ == State::waiting || state_ == State::parked)
        out.send.emplace_back(*group);
    }
    return out;
  }

  /// Throws an Error of kind `protocol` if the message is not allowed now: the worker must be killed then.
  LinkActions receive(wire::Message message, Seconds now) {
    LinkActions out;
    if (state_ == State::gone || state_ == State::leaving) return out;
    spoke_ = now;
    doubted_.reset();
    detail::visit([&](auto& m) { on(m, now, out); }, message);
    return out;
  }

  /// The process is gone, and everything that it sent was received.
  LinkActions exited(Cause cause) {
    LinkActions out;
    const bool was_parked = state_ == State::parked;
    state_ = State::gone;
    if (held_) {
      out.events.push_back(std::move(*held_));
    } else if (launch_ && was_parked) {
      lost_parked_ = std::move(cause);
    } else if (launch_) {
      const TrialId trial = launch_->trial;
      const Attempt attempt = launch_->attempt;
      if (stopping_)
        out.events.emplace_back(Stopped{trial, attempt, member()});
      else
        out.events.emplace_back(Failed{trial, attempt, kill_cause_ ? *kill_cause_ : std::move(cause), member()});
    }
    held_.reset();
    return out;
  }
  /// Why a parked run was lost with its process, if it was.
  const std::optional<Cause>& lost_parked() const { return lost_parked_; }

  /// Kills the process for a reason of hypertune (a memory limit).
  LinkActions kill(Cause cause) {
    LinkActions out;
    if (state_ != State::gone && !killed_) {
      killed_ = out.kill = true;
      kill_cause_ = std::move(cause);
    }
    return out;
  }

  /// Asks an idle worker to exit.
  LinkActions dismiss() {
    LinkActions out;
    if (state_ == State::idle || state_ == State::greeting) leave(out);
    return out;
  }

  /// At shutdown: asks a worker that has run attempts and is not computing to exit, so that its objects are destroyed.
  LinkActions release() {
    LinkActions out;
    if ((state_ == State::idle && used_) || state_ == State::parked || state_ == State::waiting) leave(out);
    return out;
  }

  /// The latest time for the next tick().
  Seconds deadline() const {
    Seconds at = std::numeric_limits<Seconds>::infinity();
    if (killed_ || state_ == State::gone) return at;
    if (kill_at_) at = *kill_at_;
    if (options_.hang_timeout > 0 && (state_ == State::running || (state_ == State::greeting && launch_)))
      at = std::min(at, heard_ + options_.hang_timeout);
    return std::min(at, silent_at());
  }
  LinkActions tick(Seconds now) {
    LinkActions out;
    if (now >= silent_at() && !doubted_) doubted_ = now;
    if (now < deadline()) return out;
    if (now >= silent_at())
      kill_cause_ = Cause{.source = FailureSource::infrastructure,
                          .text = detail::format("its process has not been heard of for {:.0f} s", now - spoke_)};
    else if (!kill_at_ || now < *kill_at_)
      kill_cause_ = Cause{.source = FailureSource::user,
                          .text = detail::format("hung: {} for {} s",
                                                 options_.prints ? "nothing was printed" : "no report and no alive()",
                                                 options_.hang_timeout)};
    killed_ = out.kill = true;
    return out;
  }

 private:
  void sign_of_life(Seconds now) { heard_ = spoke_ = now; }
  // If the driver itself was stopped, unread messages may be waiting: so the limit is extended once by 10 s.
  Seconds silent_at() const {
    constexpr Seconds once_more = 10;
    if (options_.silence_timeout <= 0 || state_ != State::running || !launch_ || !launch_->seat)
      return std::numeric_limits<Seconds>::infinity();
    return doubted_ ? *doubted_ + once_more : spoke_ + options_.silence_timeout;
  }

  void send_launch(LinkActions& out) {
    state_ = State::running;
    out.send.emplace_back(*launch_);
  }
  void leave(LinkActions& out) {
    state_ = State::leaving;
    out.send.emplace_back(wire::Shutdown{});
  }

  void on_stop(const Stop& stop, Seconds now, LinkActions& out) {
    switch (state_) {
      case State::greeting:
        launch_.reset();
        out.events.emplace_back(Stopped{stop.trial, stop.attempt, stop.member});
        break;
      case State::parked:  // its slot is free already: no answer is sent
        if (options_.reusable) {
          state_ = State::running;
          silent_stop_ = true;
          out.send.emplace_back(stop);
          kill_at_ = now + options_.stop_grace;
          stopping_ = true;
        } else {
          launch_.reset();
          leave(out);
          kill_at_ = now + options_.stop_grace;
        }
        break;
      case State::running:
      case State::waiting:
        if (stopping_) break;
        stopping_ = true;
        kill_at_ = now + options_.stop_grace;
        out.send.emplace_back(stop);
        break;
      default: break;
    }
  }

  int member() const { return launch_ && launch_->seat ? launch_->seat->member : 0; }
  template <class M>
  void require_current(const M& m, const char* what) const {
    if (!launch_ || m.trial != launch_->trial || m.attempt != launch_->attempt || m.member != member()) bad(what);
  }
  [[noreturn]] static void bad(const char* what) { fail(Errc::protocol, "the worker sent {}", what); }

  void on(const wire::Hello& m, Seconds now, LinkActions& out) {
    if (state_ != State::greeting) bad("a second Hello");
    wire::require_version(m.version, "worker");
    sign_of_life(now);
    state_ = State::idle;
    out.send.emplace_back(options_.welcome);
    if (launch_) send_launch(out);
  }
  void on(Started& m, Seconds now, LinkActions& out) {
    require_current(m, "Started for an attempt that is not under way");
    sign_of_life(now);
    out.events.emplace_back(m);
  }
  void on(Reported& m, Seconds now, LinkActions& out) {
    require_current(m, "a report of an attempt that is not under way");
    if (state_ != State::running) bad("a report before the answer to the last one");
    sign_of_life(now);
    if (!stopping_) state_ = State::waiting;  // otherwise the Stop has been sent as the answer
    out.events.emplace_back(std::move(m));
  }
  void on(Checkpointed& m, Seconds now, LinkActions& out) {
    require_current(m, "a checkpoint of an attempt that is not under way");
    sign_of_life(now);
    out.events.emplace_back(std::move(m));
  }
  void on(CheckpointLost& m, Seconds now, LinkActions& out) {
    sign_of_life(now);
    out.events.emplace_back(std::move(m));
  }
  void on(Paused& m, Seconds now, LinkActions& out) {
    require_current(m, "Paused for an attempt that is not under way");
    if (state_ != State::running) bad("Paused without having been asked");
    if (!m.parked) return end(m, options_.reusable, now, out);
    if (stopping_) return;  // Stopped will follow
    state_ = State::parked;
    out.events.emplace_back(m);
  }
  void on(Finished& m, Seconds now, LinkActions& out) {
    require_current(m, "Finished for an attempt that is not under way");
    end(m, options_.reusable, now, out);
  }
  void on(Stopped& m, Seconds now, LinkActions& out) {
    require_current(m, "Stopped for an attempt that is not under way");
    end(m, options_.reusable, now, out);
  }
  void on(Failed& m, Seconds now, LinkActions& out) {
    require_current(m, "Failed for an attempt that is not under way");
    const Stopped stopped{m.trial, m.attempt, m.member};
    end(stopping_ ? Event(stopped) : Event(std::move(m)), false, now, out);  // the process may be in any state
  }
  void on(GroupMessage& m, Seconds now, LinkActions& out) {
    if (!launch_ || !launch_->seat || m.trial != launch_->trial || m.attempt != launch_->attempt) return;
    sign_of_life(now);
    m.member = launch_->seat->member;
    out.events.emplace_back(std::move(m));
  }
  void on(SaveFailed& m, Seconds, LinkActions& out) { out.events.emplace_back(std::move(m)); }
  void on(wire::LogLine& m, Seconds, LinkActions& out) { out.events.emplace_back(Notice{std::move(m.text)}); }
  void on(const wire::Alive& m, Seconds now, LinkActions&) {
    if (m.beats != beats_) sign_of_life(now);
    beats_ = m.beats;
  }
  template <class M>
  void on(const M&, Seconds, LinkActions&) {
    bad("a message that only a driver sends");
  }

  void end(Event event, bool stays, Seconds now, LinkActions& out) {
    const bool silent = std::exchange(silent_stop_, false);
    stopping_ = false;
    kill_at_.reset();
    if (stays) {
      launch_.reset();
      state_ = State::idle;
      if (!silent) out.events.push_back(std::move(event));
      return;
    }
    if (!silent) held_ = std::move(event);
    leave(out);
    kill_at_ = now + options_.stop_grace;
  }

  LinkOptions options_;
  State state_ = State::greeting;
  bool used_ = false;
  std::optional<Launch> launch_;
  bool stopping_ = false;
  bool silent_stop_ = false;  // Stop of a parked run: no event
  bool killed_ = false;
  std::optional<Seconds> kill_at_;
  std::optional<Cause> kill_cause_, lost_parked_;
  std::optional<Event> held_;
  Seconds heard_ = 0, spoke_ = 0;   // time of the last progress; of the last message
  std::optional<Seconds> doubted_;  // when the silence limit was first exceeded
  std::uint64_t beats_ = 0;
};

}  // namespace hypertune::inline v0
