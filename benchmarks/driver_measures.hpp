// What a driver costs, for benchmarks that run one.
#pragma once

#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

namespace driver_measures {

using Clock = std::chrono::steady_clock;

inline double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A line "NAME: VALUE kB" of a file of /proc, in MB.
inline double megabytes(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::strtod(line.c_str() + name.size() + 1, nullptr) * 1024 / 1e6;
  return 0;
}
inline double resident() { return megabytes("/proc/self/status", "VmRSS"); }
inline long threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

inline void until(const std::function<bool()>& condition) {
  const auto begin = Clock::now();
  while (!condition()) {
    if (since(begin) > 120)
      hypertune::fail(hypertune::Errc::io, "what is measured has not come about within two minutes");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// What is tuned: a trial is a report.
struct Config {
  double x = 0;
};
inline auto space() { return hypertune::space<Config>(hypertune::dim("x", &Config::x, hypertune::uniform(0.0, 1.0))); }
inline hypertune::Training train(Config config) { co_yield hypertune::report("value", config.x); }

/// Of a table.
inline void row(const std::string& what, const std::string& value) {
  fmt::print("| {} | {} |\n", what, value);
  std::fflush(stdout);
}

/// An experiment on a thread of its own, which ends with this object.
class TunerThread {
 public:
  /// `make` returns its Tuner.
  template <class Make>
  explicit TunerThread(const Make& make) : tuner_(make()) {}
  TunerThread(const TunerThread&) = delete;
  TunerThread& operator=(const TunerThread&) = delete;
  ~TunerThread() {
    if (!thread_.joinable()) return;
    tuner_.stop_now();
    thread_.join();
  }
  void start() {
    thread_ = std::thread([this] {
      try {
        results_ = tuner_.run();
      } catch (...) { error_ = std::current_exception(); }
      over_ = true;
    });
  }
  bool over() const { return over_; }
  /// Waits for it; throws what it has thrown.
  const hypertune::Results& end() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return results_;
  }

 private:
  hypertune::Tuner tuner_;
  hypertune::Results results_;
  std::exception_ptr error_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace driver_measures
