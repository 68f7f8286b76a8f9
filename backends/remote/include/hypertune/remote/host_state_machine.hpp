// HostStateMachine: the connection state of one host; decides when to connect, suspect it or back off. No I/O.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::remote {

/// How long the driver waits for a host, in seconds.
struct HostTimeouts {
  double heartbeat = 2.5;  ///< without any message until the host is lost
  double connect = 60;     ///< from the start of a connection to the agent's hello
  double hello = 9e8;      ///< from the opening of the stream to the agent's hello
  double first_delay = 1;  ///< before the second attempt to connect; doubled for each further one
  double max_delay = 300;  ///< maximum delay between attempts
  double stable = 60;      ///< connected time after which earlier failures are forgotten
  int refusals = 3;        ///< permanent failures in a row until the host is refused; unknown ones count a third

  void validate() const {
    const auto positive = [](double value, const char* name) {
      if (!(value > 0 && value < 1e9)) fail(Errc::usage, "'{}' is {} seconds, but must be more than 0", name, value);
    };
    positive(heartbeat, "heartbeat");
    positive(connect, "connect");
    positive(hello, "hello");
    positive(first_delay, "first_delay");
    positive(max_delay, "max_delay");
    positive(stable, "stable");
    if (refusals < 1) fail(Errc::usage, "'refusals' is {}, but must be 1 or more", refusals);
  }
  /// Seconds between heartbeats.
  double heartbeat_interval() const { return heartbeat / 6; }
  /// Seconds without a driver's heartbeat after which the agent ends its trials: before the driver restarts them
  /// elsewhere.
  static double agent_liveness(double heartbeat) { return heartbeat * 0.8; }
};

enum class HostState : std::uint8_t {
  connecting,
  ready,
  suspect,      ///< silent for longer than usual
  draining,     ///< about to go away: its trials save and leave
  backing_off,  ///< lost, or not reached; retried later
  gone,         ///< removed for good
};

/// Whether trials can be placed on the host.
constexpr bool is_usable(HostState state) { return state == HostState::ready || state == HostState::suspect; }

constexpr const char* to_string(HostState state) {
  switch (state) {
    case HostState::connecting: return "connecting";
    case HostState::ready: return "ready";
    case HostState::suspect: return "suspect";
    case HostState::draining: return "draining";
    case HostState::backing_off: return "backing off";
    case HostState::gone: return "gone";
  }
  return "unknown";
}

/// Actions to carry out after an event, in this order.
struct HostActions {
  bool close = false;                        ///< close the connection: data that still arrives is ignored
  bool gained = false;                       ///< trials can be placed on the host
  std::optional<std::string> unusable = {};  ///< no trial can be placed there (any more); the reason
  bool lost = false;                         ///< what ran there is lost
  bool connect = false;
};

/// Each member function with a time reports an event and returns the actions. Not thread-safe.
class HostStateMachine {
 public:
  explicit HostStateMachine(HostTimeouts timeouts) : timeouts_(timeouts) { timeouts_.validate(); }

  HostState state() const { return state_; }
  /// Whether the agent is connected, so that commands can be sent.
  bool up() const { return usable() || draining(); }
  bool usable() const { return is_usable(state_); }
  bool draining() const { return state_ == HostState::draining; }
  /// Why the host is not usable, with the consequence ("…; set aside for 4 s"), for a notice.
  const std::string& reason() const { return reason_; }
  /// The same without the consequence, for causes and errors.
  const std::string& problem() const { return problem_; }
  /// Failures in a row.
  int failures() const { return failures_; }
  /// Permanent failures have been repeated: the host is retried rarely, and no run should wait for it.
  bool refused() const { return refusals_ >= timeouts_.refusals * weight; }

  /// The host has been removed from the list.
  bool leaving() const { return leaving_; }

  HostActions start(Seconds now) {
    say("is being connected to");
    return connect(now);
  }

  /// The stream is open; the agent should say hello next.
  void opened(Seconds now) { hello_by_ = now + timeouts_.hello; }

  /// The agent has said hello.
  HostActions hello_received(Seconds now) {
    if (state_ != HostState::connecting) return {};
    state_ = HostState::ready;
    since_ = heard_ = now;
    say({});
    return {.gained = true};
  }

  /// A message has arrived from the agent.
  void message_received(Seconds now) {
    heard_ = now;
    if (state_ == HostState::suspect) state_ = HostState::ready;
  }

  /// A trial runs on the host, so it is usable.
  void trial_started() { refusals_ = 0; }

  /// The connection has ended, or could not be made.
  HostActions ended(const std::string& why, Seconds now, FailureClass failure = FailureClass::transient) {
    if (state_ == HostState::gone || state_ == HostState::backing_off) return {};
    return give_up(why, now, failure);
  }

  /// The host has announced that it will go away (`for_good`: or it has been removed from the list).
  HostActions drain(const std::string& why, bool for_good = false) {
    leaving_ = leaving_ || for_good;
    if (state_ == HostState::gone) return {};
    if (!up()) {
      if (!for_good) return {};
      const bool close = state_ == HostState::connecting;
      state_ = HostState::gone;
      say(why);
      return {.close = close, .unusable = reason_};
    }
    if (draining()) return {};
    state_ = HostState::draining;
    say(why);
    return {.unusable = reason_};
  }
  /// Connecting takes longer for a known reason, for which it is not given up.
  HostActions waiting(const std::string& why) {
    if (state_ != HostState::connecting || reason_ == why) return {};
    say(why);
    return {.unusable = reason_};
  }
  /// The reason for waiting will never go away.
  HostActions refuse(const std::string& why, Seconds now) {
    if (state_ != HostState::connecting) return {};
    refusals_ = timeouts_.refusals * weight;
    auto out = give_up(why, now, FailureClass::permanent);
    out.close = true;
    return out;
  }
  /// All trials of a draining host have left it.
  HostActions drained(Seconds now) {
    if (!draining()) return {};
    if (now - since_ >= timeouts_.stable) failures_ = 0;
    HostActions out{.close = true};
    if (leaving_) {
      state_ = HostState::gone;
    } else {
      back_off(reason_, now);
      out.unusable = reason_;
    }
    return out;
  }
  /// The host is on the list again.
  HostActions restored(Seconds now) {
    leaving_ = false;
    if (state_ == HostState::gone) refusals_ = 0;
    return state_ == HostState::gone ? start(now) : HostActions{};
  }

  /// The latest time for the next call of tick().
  Seconds deadline() const {
    switch (state_) {
      case HostState::connecting: return std::min(since_ + timeouts_.connect, hello_by_);
      case HostState::ready: return heard_ + timeouts_.heartbeat / 2;
      case HostState::suspect:
      case HostState::draining: return heard_ + timeouts_.heartbeat;
      case HostState::backing_off: return retry_at_;
      case HostState::gone: break;
    }
    return std::numeric_limits<Seconds>::infinity();
  }
  /// `said`: the agent's output so far, if it has not said hello.
  HostActions tick(Seconds now, std::string_view said = {}) {
    if (now < deadline()) return {};
    switch (state_) {
      case HostState::connecting: {
        const bool mute = now >= hello_by_;
        auto why = mute ? hypertune::detail::format("its agent has not spoken within {:g} s", timeouts_.hello)
                        : hypertune::detail::format("no answer within {:g} s", timeouts_.connect);
        if (!said.empty()) why += hypertune::detail::format("; it said: {}", said);
        auto out = give_up(why, now, mute ? FailureClass::permanent : FailureClass::transient);
        out.close = true;
        return out;
      }
      case HostState::ready:
        if (now < heard_ + timeouts_.heartbeat) {
          state_ = HostState::suspect;
          return {};
        }
        [[fallthrough]];
      case HostState::suspect:
      case HostState::draining: {
        auto out = give_up(hypertune::detail::format("no sign of life for {:.1f} s", now - heard_), now);
        out.close = true;
        return out;
      }
      case HostState::backing_off: return connect(now);
      case HostState::gone: break;
    }
    return {};
  }

 private:
  HostActions connect(Seconds now) {
    state_ = HostState::connecting;
    since_ = now;
    hello_by_ = std::numeric_limits<Seconds>::infinity();
    return {.connect = true};
  }
  void say(const std::string& why) { reason_ = problem_ = why; }
  HostActions give_up(const std::string& why, Seconds now, FailureClass failure = FailureClass::transient) {
    HostActions out{.lost = up()};
    // A failure of another class resets the count.
    refusals_ = failure == FailureClass::transient
                    ? 0
                    : std::min(refusals_ + (failure == FailureClass::permanent ? weight : 1), 1 << 20);
    if (leaving_) {
      state_ = HostState::gone;
      say(why);
    } else {
      if (up() && !draining() && now - since_ >= timeouts_.stable) failures_ = 0;
      back_off(draining() ? reason_ + " (" + why + ")" : why, now);
    }
    out.unusable = reason_;
    return out;
  }
  void back_off(const std::string& why, Seconds now) {
    const double delay =
        refused() ? timeouts_.max_delay
                  : std::min(timeouts_.max_delay, timeouts_.first_delay * std::pow(2.0, std::min(failures_, 40)));
    ++failures_;
    state_ = HostState::backing_off;
    retry_at_ = now + delay;
    problem_ = why;
    reason_ = why;
    if (delay < 1) return;  // a delay this short is not worth a message
    reason_ += hypertune::detail::format("; set aside for {:g} s", delay);
    if (refused()) reason_ += ", as this does not pass by itself";
    if (failures_ > 1)
      reason_ += hypertune::detail::format("{} after {} failures in a row", refused() ? "," : "", failures_);
  }

  HostTimeouts timeouts_;
  HostState state_ = HostState::gone;
  Seconds since_ = 0, heard_ = 0, retry_at_ = 0;
  Seconds hello_by_ = std::numeric_limits<Seconds>::infinity();
  static constexpr int weight = 3;  // of a permanent failure, relative to an unknown one
  int failures_ = 0, refusals_ = 0;
  bool leaving_ = false;
  std::string reason_ = "was never connected to", problem_ = reason_;
};

}  // namespace hypertune::inline v0::remote
