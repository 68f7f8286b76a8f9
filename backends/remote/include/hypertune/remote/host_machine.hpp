// HostMachine: what is known of one host, and when to connect to it, doubt it, or leave it alone. No I/O.
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

/// How long the driver waits for a host. Seconds.
struct HostTimeouts {
  double liveness = 2.5;   ///< without any sign of life until the host is lost
  double connect = 60;     ///< for a connection until the agent says hello
  double hello = 9e8;      ///< of that, once there is a stream
  double first_delay = 1;  ///< before the second attempt to connect; each further one waits twice as long
  double max_delay = 300;  ///< at most
  double stable = 60;      ///< after so long without a failure the host is as good as new
  int refusals = 3;        ///< so many failures in a row that will not pass by themselves, and it is refused

  void validate() const {
    const auto positive = [](double value, const char* name) {
      if (!(value > 0 && value < 1e9)) fail(Errc::usage, "'{}' is {} seconds, but must be more than 0", name, value);
    };
    positive(liveness, "liveness");
    positive(connect, "connect");
    positive(hello, "hello");
    positive(first_delay, "first_delay");
    positive(max_delay, "max_delay");
    positive(stable, "stable");
    if (refusals < 1) fail(Errc::usage, "'refusals' is {}, but must be 1 or more", refusals);
  }
  /// Seconds between signs of life.
  double heartbeat() const { return liveness / 6; }
  /// After so long without one of the driver's the agent ends its trials: before the driver starts them elsewhere.
  static double agent_liveness(double liveness) { return liveness * 0.8; }
};

enum class HostState : std::uint8_t {
  connecting,
  ready,
  suspect,      ///< silent for longer than is usual
  draining,     ///< it will go away: what runs there saves and leaves
  backing_off,  ///< lost, or not reached; tried again later
  gone,         ///< for good
};

/// Whether trials can be placed there.
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

/// What is to be done because of what happened, in this order.
struct HostActions {
  bool close = false;                        ///< give the connection up: nothing that it still brings is looked at
  bool gained = false;                       ///< trials can be placed there
  std::optional<std::string> unusable = {};  ///< no trial can be placed there (any more), and why
  bool lost = false;                         ///< what ran there is gone
  bool connect = false;
};

/// Each member function that takes a time tells what happened and returns what to do. Not thread-safe.
class HostMachine {
 public:
  explicit HostMachine(HostTimeouts timeouts) : timeouts_(timeouts) { timeouts_.validate(); }

  HostState state() const { return state_; }
  /// Whether the agent is there: commands can be sent.
  bool up() const { return usable() || draining(); }
  bool usable() const { return is_usable(state_); }
  bool draining() const { return state_ == HostState::draining; }
  /// Why it is not usable, and what follows from that ("…; set aside for 4 s"): for a notice of it.
  const std::string& reason() const { return reason_; }
  /// The same without what follows: for causes and errors.
  const std::string& trouble() const { return trouble_; }
  /// Failures in a row.
  int failures() const { return failures_; }
  /// It has failed for a reason that does not pass by itself, again and again: it is tried seldom, and no run should
  /// wait for it.
  bool refused() const { return refusals_ >= timeouts_.refusals * weight; }

  /// It has been taken from the list.
  bool leaving() const { return leaving_; }

  HostActions start(Seconds now) {
    say("is being connected to");
    return connect(now);
  }

  /// There is a stream, by which the agent is to say hello.
  void opened(Seconds now) { hello_by_ = now + timeouts_.hello; }

  /// The agent said hello.
  HostActions greeted(Seconds now) {
    if (state_ != HostState::connecting) return {};
    state_ = HostState::ready;
    since_ = heard_ = now;
    say({});
    return {.gained = true};
  }

  /// Anything came from the agent.
  void heard(Seconds now) {
    heard_ = now;
    if (state_ == HostState::suspect) state_ = HostState::ready;
  }

  /// A trial runs there: it can be used after all.
  void proved() { refusals_ = 0; }

  /// The connection has ended, or could not be made.
  HostActions ended(const std::string& why, Seconds now, FailureClass trouble = FailureClass::transient) {
    if (state_ == HostState::gone || state_ == HostState::backing_off) return {};
    return give_up(why, now, trouble);
  }

  /// The host has said that it will go away (`for_good`: or it has been taken from the list).
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
  /// It is being connected to, and waits for something by which it is not given up.
  HostActions waits(const std::string& why) {
    if (state_ != HostState::connecting || reason_ == why) return {};
    say(why);
    return {.unusable = reason_};
  }
  /// What it waits for will never come about.
  HostActions refuse(const std::string& why, Seconds now) {
    if (state_ != HostState::connecting) return {};
    refusals_ = timeouts_.refusals * weight;
    auto out = give_up(why, now, FailureClass::permanent);
    out.close = true;
    return out;
  }
  /// All that ran on a draining host has left it.
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
  /// It is on the list again.
  HostActions restored(Seconds now) {
    leaving_ = false;
    if (state_ == HostState::gone) refusals_ = 0;
    return state_ == HostState::gone ? start(now) : HostActions{};
  }

  /// When tick() is to be called at the latest.
  Seconds deadline() const {
    switch (state_) {
      case HostState::connecting: return std::min(since_ + timeouts_.connect, hello_by_);
      case HostState::ready: return heard_ + timeouts_.liveness / 2;
      case HostState::suspect:
      case HostState::draining: return heard_ + timeouts_.liveness;
      case HostState::backing_off: return retry_at_;
      case HostState::gone: break;
    }
    return std::numeric_limits<Seconds>::infinity();
  }
  /// `said`: what is known of why the agent has not said hello, if anything.
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
        if (now < heard_ + timeouts_.liveness) {
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
  void say(const std::string& why) { reason_ = trouble_ = why; }
  HostActions give_up(const std::string& why, Seconds now, FailureClass trouble = FailureClass::transient) {
    HostActions out{.lost = up()};
    // One kind of trouble counts as long as no other comes between.
    refusals_ = trouble == FailureClass::transient
                    ? 0
                    : std::min(refusals_ + (trouble == FailureClass::permanent ? weight : 1), 1 << 20);
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
    trouble_ = why;
    reason_ = why;
    if (delay < 1) return;  // a moment helps nobody to know
    reason_ += hypertune::detail::format("; set aside for {:g} s", delay);
    if (refused()) reason_ += ", as this does not pass by itself";
    if (failures_ > 1)
      reason_ += hypertune::detail::format("{} after {} failures in a row", refused() ? "," : "", failures_);
  }

  HostTimeouts timeouts_;
  HostState state_ = HostState::gone;
  Seconds since_ = 0, heard_ = 0, retry_at_ = 0;
  Seconds hello_by_ = std::numeric_limits<Seconds>::infinity();
  static constexpr int weight = 3;  // of a lasting trouble, against an unknown one
  int failures_ = 0, refusals_ = 0;
  bool leaving_ = false;
  std::string reason_ = "was never connected to", trouble_ = reason_;
};

}  // namespace hypertune::inline v0::remote
