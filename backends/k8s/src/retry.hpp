// Retry: decides what to do after an attempt of a call. No clock and no I/O.
#pragma once

#include "back_off.hpp"
#include "http.hpp"

#include <hypertune/k8s/request.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace hypertune::inline v0::k8s::detail {

/// Decides for one call.
class Retry {
 public:
  struct Decision {
    enum class Kind : std::uint8_t {
      done,     ///< return the outcome, success or not
      again,    ///< try again after `pause` seconds
      renew,    ///< try again at once with renewed credentials
      existed,  ///< the object exists already, and by its name it is the one that this call makes
    };
    Kind kind = Kind::done;
    double pause = 0;
  };

  /// `until`: when the call must have ended, on the clock of `now` below.
  Retry(Method method, bool named, double until, double max_pause)
      : repeatable_(method != Method::post && method != Method::patch),
        named_(named && method == Method::post),
        until_(until),
        max_pause_(max_pause),
        back_off_(0.1, max_pause) {}

  /// `already_exists`: the reason of a 409. `uniform`: a random number from [0, 1).
  Decision after(const Outcome& outcome, bool already_exists, double now, double uniform) {
    using enum Decision::Kind;
    if (outcome.kind == Outcome::Kind::impossible) return {};
    if (outcome.kind == Outcome::Kind::answered) {
      if (outcome.status == 401 && !renewed_) {
        renewed_ = true;
        return {.kind = renew};
      }
      if (outcome.status == 409 && already_exists && named_) return {.kind = existed};
      if (!may_change(outcome.status)) return {};
      if (outcome.status != 429 && !repeatable_ && !named_) return {};
    }
    if (outcome.kind == Outcome::Kind::lost && !repeatable_ && !named_) return {};
    double pause = back_off_.pause(uniform);
    // Add jitter: not all clients should come at the time that the server names.
    if (outcome.retry_after) pause = std::min(*outcome.retry_after, max_pause_) + pause * 0.5;
    if (now + pause >= until_) return {};
    return {.kind = again, .pause = pause};
  }

 private:
  static bool may_change(int status) {
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
  }

  bool repeatable_, named_, renewed_ = false;
  double until_, max_pause_;
  BackOff back_off_;
};

}  // namespace hypertune::inline v0::k8s::detail
