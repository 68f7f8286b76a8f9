// A driver in a process of its own, to be killed while its trials' processes run.
#pragma once

#include "local_support.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <vector>

namespace hypertune::inline v0::test {

/// Three trials that each start two processes and report their numbers, in a driver that then waits for ever. What the
/// driver leaves behind when it is killed becomes a child of this process (a subreaper meanwhile), to be waited for.
class DriverProcess {
 public:
  static constexpr std::size_t trials = 3, per_trial = 2;

  /// `make` gives, in the driver, a pointer to a bench whose trials 0 to 2 are launched.
  template <class Make>
  explicit DriverProcess(const Make& make) {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      const auto bench = make();
      for (std::size_t i = 0; i < trials * per_trial; ++i) {
        const auto reported = bench->events.template next<Reported>();
        const auto pid = static_cast<pid_t>(reported.report.metrics.front().second);
        static_cast<void>(!::write(pipe[1], &pid, sizeof pid));
        bench->executor.perform(Continue{reported.trial, 0});
      }
      for (;;) ::pause();
    }
    ::close(pipe[1]);
    started_.resize(trials * per_trial);
    for (auto& pid : started_) REQUIRE(::read(pipe[0], &pid, sizeof pid) == sizeof pid);
    ::close(pipe[0]);
  }
  DriverProcess(const DriverProcess&) = delete;
  DriverProcess& operator=(const DriverProcess&) = delete;
  ~DriverProcess() {
    kill();
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  }

  pid_t pid() const { return pid_; }
  /// What its trials started.
  const std::vector<pid_t>& started() const { return started_; }
  /// Whether it was alive until now.
  bool kill() {
    if (pid_ < 0) return false;
    const bool was = ::kill(pid_, SIGKILL) == 0 && ::waitpid(pid_, nullptr, 0) == pid_;
    pid_ = -1;
    return was;
  }

 private:
  pid_t pid_ = -1;
  std::vector<pid_t> started_;
};

}  // namespace hypertune::inline v0::test
