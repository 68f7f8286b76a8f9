// HostMachine: what is known of one host, and when to connect to it, doubt it, or leave it alone. No I/O.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::ssh {

/// How patient the driver is with a host. Seconds.
struct HostPatience {
  double silence = 3;          ///< without any sign of life until the host is lost
  double connect = 60;         ///< for a connection until the agent says hello
  double first_delay = 1;      ///< before the second attempt to connect; each further one waits twice as long
  double longest_delay = 300;  ///< at most
  double stable = 60;          ///< after so long without a failure the host is as good as new

  void validate() const {
    const auto positive = [](double value, const char* name) {
      if (!(value > 0 && value < 1e9)) fail(Errc::usage, "'{}' is {} seconds, but must be more than 0", name, value);
    };
    positive(silence, "silence");
    positive(connect, "connect");
    positive(first_delay, "first_delay");
    positive(longest_delay, "longest_delay");
    positive(stable, "stable");
  }
  /// Seconds between signs of life.
  double heartbeat() const { return silence / 6; }
  /// After so much silence the agent ends its trials: before the driver starts them elsewhere.
  static double agent_silence(double silence) { return silence * 0.8; }
};

enum class HostState : std::uint8_t {
  connecting,
  ready,
  suspect,      ///< silent for longer than is usual
  draining,     ///< it will go away: what runs there saves and leaves
  backing_off,  ///< lost, or not reached; tried again later
  gone,         ///< for good
};

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
  explicit HostMachine(HostPatience patience) : patience_(patience) { patience_.validate(); }

  HostState state() const { return state_; }
  /// Whether the agent is there: commands can be sent.
  bool up() const { return state_ == HostState::ready || state_ == HostState::suspect || draining(); }
  bool usable() const { return state_ == HostState::ready || state_ == HostState::suspect; }
  bool draining() const { return state_ == HostState::draining; }
  /// Why it is not usable, for people.
  const std::string& reason() const { return reason_; }
  /// Failures in a row.
  int failures() const { return failures_; }

  HostActions start(Seconds now) {
    state_ = HostState::connecting;
    since_ = now;
    reason_ = "is being connected to";
    return {.connect = true};
  }

  /// The agent said hello.
  HostActions greeted(Seconds now) {
    if (state_ != HostState::connecting) return {};
    state_ = HostState::ready;
    since_ = heard_ = now;
    reason_.clear();
    return {.gained = true};
  }

  /// Anything came from the agent.
  void heard(Seconds now) {
    heard_ = now;
    if (state_ == HostState::suspect) state_ = HostState::ready;
  }

  /// The connection has ended, or could not be made.
  HostActions ended(const std::string& why, Seconds now) {
    if (state_ == HostState::gone || state_ == HostState::backing_off) return {};
    return give_up(why, now);
  }

  /// The host has said that it will go away (`for_good`: or it has been taken from the list).
  HostActions drain(const std::string& why, bool for_good = false) {
    leaving_ = leaving_ || for_good;
    if (state_ == HostState::gone) return {};
    if (!up()) {
      if (!for_good) return {};
      const bool close = state_ == HostState::connecting;
      state_ = HostState::gone;
      reason_ = why;
      return {.close = close, .unusable = reason_};
    }
    if (draining()) return {};
    state_ = HostState::draining;
    reason_ = why;
    return {.unusable = reason_};
  }
  /// All that ran on a draining host has left it.
  HostActions drained(Seconds now) {
    if (!draining()) return {};
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
    return state_ == HostState::gone ? start(now) : HostActions{};
  }

  /// When tick() is to be called at the latest.
  Seconds deadline() const {
    switch (state_) {
      case HostState::connecting: return since_ + patience_.connect;
      case HostState::ready: return heard_ + patience_.silence / 2;
      case HostState::suspect:
      case HostState::draining: return heard_ + patience_.silence;
      case HostState::backing_off: return retry_at_;
      case HostState::gone: break;
    }
    return std::numeric_limits<Seconds>::infinity();
  }
  HostActions tick(Seconds now) {
    if (now < deadline()) return {};
    switch (state_) {
      case HostState::connecting: {
        auto out = give_up(hypertune::detail::format("no answer within {:g} s", patience_.connect), now);
        out.close = true;
        return out;
      }
      case HostState::ready:
        if (now < heard_ + patience_.silence) {
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
      case HostState::backing_off: {
        state_ = HostState::connecting;
        since_ = now;
        return {.connect = true};
      }
      case HostState::gone: break;
    }
    return {};
  }

 private:
  HostActions give_up(const std::string& why, Seconds now) {
    HostActions out{.lost = up()};
    if (leaving_) {
      state_ = HostState::gone;
      reason_ = why;
    } else {
      if (up() && !draining() && now - since_ >= patience_.stable) failures_ = 0;
      back_off(draining() ? reason_ + " (" + why + ")" : why, now);
    }
    out.unusable = reason_;
    return out;
  }
  void back_off(const std::string& why, Seconds now) {
    const double delay =
        std::min(patience_.longest_delay, patience_.first_delay * std::pow(2.0, std::min(failures_, 40)));
    ++failures_;
    state_ = HostState::backing_off;
    retry_at_ = now + delay;
    reason_ = hypertune::detail::format("{}; set aside for {:g} s", why, delay);
    if (failures_ > 1) reason_ += hypertune::detail::format(" after {} failures in a row", failures_);
  }

  HostPatience patience_;
  HostState state_ = HostState::gone;
  Seconds since_ = 0, heard_ = 0, retry_at_ = 0;
  int failures_ = 0;
  bool leaving_ = false;
  std::string reason_ = "was never connected to";
};

}  // namespace hypertune::ssh
