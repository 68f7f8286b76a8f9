// Processor time, for benchmarks: what a busy machine changes less than the clock's.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>

/// Of this process, in seconds.
inline double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
