// UsageMeter: definitions.
#pragma once

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/local/usage_meter.hpp>
#include <hypertune/process/process_tree.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace hypertune::inline v0::local::detail {

/// The most that a process has had resident, in bytes; 0 if it is gone.
inline std::uint64_t peak_of(const std::string& process) {
  std::ifstream in("/proc/" + process + "/status");
  for (std::string word; in >> word;)
    if (word == "VmHWM:") {
      std::uint64_t kilobytes = 0;
      in >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

/// Seconds of processors that a process has used, and those of its descendants that have ended.
inline double cpu_time_of(pid_t pid) {
  double ticks = 0;
  for (const int field : {14, 15, 16, 17})
    ticks +=
        static_cast<double>(hypertune::detail::parse_number<std::int64_t>(process::stat_field(pid, field)).value_or(0));
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void UsageMeter::begin() {
  *this = {};
  own_memory_ = peak_of("self");
  begun_ = hypertune::detail::steady_seconds();
}

void UsageMeter::look(const std::vector<pid_t>& roots) {
  look_at_ = hypertune::detail::steady_seconds() + interval;
  double cpu_time = 0;
  std::uint64_t together = 0;
  for (const pid_t root : roots)
    process::any_in_tree(root, [&](pid_t each) {
      cpu_time += cpu_time_of(each);
      together += process::resident_memory(each);
      memory_ = std::max(memory_, peak_of(std::to_string(each)));
      return false;
    });
  memory_ = std::max(memory_, together);
  cpu_time_ = std::max(cpu_time_, cpu_time);  // a process that ends meanwhile may be missed
}

void UsageMeter::end(const rusage& usage) {
  if (ended_) return;
  ended_ = hypertune::detail::steady_seconds();
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  cpu_time_ = std::max(cpu_time_, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  // Until it executes its program a new process has the memory of this one, and the kernel counts that, too: a smaller
  // peak than that is known by looking only.
  const auto peak = static_cast<std::uint64_t>(std::max(usage.ru_maxrss, 0L)) * 1024;
  constexpr std::uint64_t page_tables = std::uint64_t{1} << 20U;
  if (memory_ == 0 || peak > own_memory_ + page_tables) memory_ = std::max(memory_, peak);
}

void UsageMeter::suspend() {
  if (!suspended_) suspended_ = hypertune::detail::steady_seconds();
}

void UsageMeter::resume() {
  if (suspended_) begun_ += hypertune::detail::steady_seconds() - *suspended_;
  suspended_.reset();
}

double UsageMeter::value(Measured what) const {
  switch (what) {
    case Measured::duration: return ended_.value_or(hypertune::detail::steady_seconds()) - begun_;
    case Measured::cpu_time: return cpu_time_;
    case Measured::peak_memory: break;
  }
  return static_cast<double>(memory_);
}

}  // namespace hypertune::inline v0::local::detail
