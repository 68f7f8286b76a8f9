// BackOff: pauses between attempts. RateLimit: a limit of calls per second. No clock and no I/O.
#pragma once

#include <algorithm>

namespace hypertune::inline v0::k8s::detail {

/// Pauses that double. Each is drawn from the upper half of its range, so that many clients do not come back at once.
class BackOff {
 public:
  explicit BackOff(double first = 0.1, double most = 10) : first_(first), most_(std::max(first, most)), next_(first) {}

  /// The next pause in seconds. `uniform`: a random number from [0, 1).
  double pause(double uniform) {
    const double whole = next_;
    next_ = std::min(next_ * 2, most_);
    return whole * (0.5 + 0.5 * uniform);
  }
  void reset() { next_ = first_; }

 private:
  double first_, most_, next_;
};

/// Allows `rate` calls a second on average, and `burst` of them at once. Each caller reserves its turn and waits for
/// it.
class RateLimit {
 public:
  RateLimit(double rate, double burst) : rate_(rate), burst_(std::max(burst, 1.0)), there_(burst_) {}

  /// Seconds to wait. `now`: seconds of a monotonic clock.
  double take(double now) {
    if (rate_ <= 0) return 0;
    there_ = std::min(burst_, there_ + std::max(0.0, now - at_) * rate_);
    at_ = std::max(at_, now);
    there_ -= 1;
    return there_ >= 0 ? 0 : -there_ / rate_;
  }

 private:
  double rate_, burst_, there_, at_ = 0;
};

}  // namespace hypertune::inline v0::k8s::detail
