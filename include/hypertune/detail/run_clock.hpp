// The clock of a run: readable dates, and reliable durations.
#pragma once

#include <ctime>

namespace hypertune::inline v0 {

namespace detail {

inline double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Seconds of a monotonic clock, for durations within this process.
inline double steady_seconds() { return read_clock(CLOCK_MONOTONIC); }

template <clockid_t Clock>
double dated_clock() {
  static const double origin = read_clock(CLOCK_REALTIME) - read_clock(Clock);
  return origin + read_clock(Clock);
}

}  // namespace detail

/// Seconds since the Unix epoch: the wall clock at the first call, and from then on a monotonic clock. So if somebody
/// sets the machine's clock, no time between two calls is too long, too short or negative. While the machine sleeps,
/// the clock stands still, as trials do.
inline double run_clock() { return detail::dated_clock<CLOCK_MONOTONIC>(); }

/// The same, but it continues while the machine sleeps: for what happens elsewhere, such as machines that cost money.
inline double world_clock() { return detail::dated_clock<CLOCK_BOOTTIME>(); }

}  // namespace hypertune::inline v0
