// Retry: what follows an attempt of a call. No clock and no I/O.
#pragma once

#include "back_off.hpp"

#include <hypertune/k8s/request.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace hypertune::inline v0::k8s::detail {

/// How one attempt went.
struct Outcome {
  enum class Kind : std::uint8_t {
    answered,    ///< `status` says how
    unsent,      ///< no connection was made: it was not performed
    lost,        ///< nobody knows whether it was performed
    impossible,  ///< what another attempt will not change: a certificate that is not trusted, an answer that is too
                 ///< long
  };
  Kind kind = Kind::unsent;
  int status = 0;
  std::optional<double> retry_after = {};  ///< seconds, as the server says
  std::string trouble = {};                ///< one line, of all but `answered`
};

/// Decides, for one call.
class Retry {
 public:
  struct Decision {
    enum class Kind : std::uint8_t {
      done,     ///< what came is the answer, success or not
      again,    ///< after `pause` seconds
      renew,    ///< at once, with credentials that are fetched anew
      existed,  ///< the object that was to be made is there already, as this call's name says it is its own
    };
    Kind kind = Kind::done;
    double pause = 0;
  };

  /// `until`: when the call must have ended; of the same clock as `now` below.
  Retry(Method method, bool named, double until, double max_pause)
      : repeatable_(method != Method::post && method != Method::patch),
        named_(named && method == Method::post),
        until_(until),
        max_pause_(max_pause),
        back_off_(0.1, max_pause) {}

  /// `already_exists`: the reason of a 409. `uniform`: from [0, 1).
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
    // Not all at the second that the server names.
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
