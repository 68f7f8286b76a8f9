// The clock of a run: dates that a person can read, and durations that hold.
#pragma once

#include <ctime>

namespace hypertune {

namespace detail {

template <clockid_t Clock>
double dated_clock() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  static const double origin = read(CLOCK_REALTIME) - read(Clock);
  return origin + read(Clock);
}

}  // namespace detail

/// Seconds since the Unix epoch by the wall clock of when this was first asked for, and from then on by a monotonic
/// clock: whoever sets the clock of the machine, no time between two answers is too long, too short or negative. While
/// the machine sleeps it stands still, as trials do.
inline double run_clock() { return detail::dated_clock<CLOCK_MONOTONIC>(); }

/// The same, but it goes on while the machine sleeps: for what lasts elsewhere, machines that cost money, say.
inline double world_clock() { return detail::dated_clock<CLOCK_BOOTTIME>(); }

}  // namespace hypertune
