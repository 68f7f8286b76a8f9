// Signals (Ctrl-C, a closed terminal): the first one saves everything and ends the run, the second ends it at once.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

/// How urgently the user wants to end the run: 0: not at all; 1: once everything is saved; 2: now. Thread-safe.
class Interrupts {
 public:
  void request(int level) {
    int seen = level_.load();
    while (seen < level && !level_.compare_exchange_weak(seen, level)) {}
  }
  int level() const { return level_.load(); }

 private:
  std::atomic<int> level_{0};
};

/// What a SignalWatch does once the second signal has come.
enum class AfterSecondSignal {
  hand_back,  ///< the previous handlers are restored: the next signal acts as it would without hypertune
  leave       ///< the process exits with status 130 after 5 s, unless it has ended by then, or at the third signal
};

/// During its lifetime the first SIGINT, SIGTERM or SIGHUP calls `on_signal(1)`, and a further SIGINT or SIGTERM calls
/// `on_signal(2)`, on a thread of its own. A further SIGHUP is ignored: when a terminal is closed, the shell and the
/// kernel send one each. After the second signal AfterSecondSignal applies, because a step that never returns cannot be
/// waited for. A SIGHUP that was ignored before stays ignored (nohup). Only one SignalWatch may exist at a time; its
/// end restores the previous handlers.
class SignalWatch {
 public:
  explicit SignalWatch(std::function<void(int)> on_signal, AfterSecondSignal after = AfterSecondSignal::hand_back)
      : on_signal_(std::move(on_signal)), after_(after) {
    if (!signals_ || !closing_) fail(Errc::io, "cannot make an event descriptor (errno {})", errno);
    int none = -1;
    if (!descriptor().compare_exchange_strong(none, signals_.get()))
      fail(Errc::usage, "two experiments with .handle_signals run at once: turn it off for one of them");
    struct sigaction action{};
    action.sa_handler = [](int signal) {
      const std::uint64_t one = signal == SIGHUP ? one_hangup : 1;
      const int saved = errno;
      [[maybe_unused]] const auto written = ::write(descriptor().load(), &one, sizeof one);
      errno = saved;
    };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      ::sigaction(watched[i], nullptr, &previous_[i]);
      if (watched[i] == SIGHUP && ignored(previous_[i])) continue;
      ::sigaction(watched[i], &action, nullptr);
    }
    try {
      thread_ = std::thread([this] { watch(); });
    } catch (...) {
      hand_back();
      descriptor() = -1;
      throw;
    }
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(closing_.get(), &one, sizeof one);
    thread_.join();
    hand_back();
    descriptor() = -1;
  }

 private:
  static constexpr std::array watched{SIGINT, SIGTERM, SIGHUP};
  static constexpr int patience_ms = 5000;
  static constexpr std::uint64_t one_hangup = std::uint64_t{1} << 32U;  // eventfd counter: hangups above, others below
  // A signal handler can only use globals.
  static std::atomic<int>& descriptor() {
    static std::atomic<int> fd{-1};
    return fd;
  }
  static bool ignored(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
  }

  // Runs on the watch's thread, or after that has ended. At most once, so that it never overwrites handlers that the
  // program has set since.
  void hand_back() {
    if (std::exchange(handed_back_, true)) return;
    for (std::size_t i = 0; i < watched.size(); ++i) ::sigaction(watched[i], &previous_[i], nullptr);
  }

  void watch() {
    const bool leaves = after_ == AfterSecondSignal::leave;
    for (std::uint64_t count = 0;;) {
      std::array<pollfd, 2> fds{pollfd{signals_.get(), POLLIN, 0}, pollfd{closing_.get(), POLLIN, 0}};
      const int ready = ::poll(fds.data(), fds.size(), leaves && count >= 2 ? patience_ms : -1);
      if (fds[1].revents != 0) return;
      if (ready == 0) leave();
      std::uint64_t more = 0;
      if (ready < 0 || ::read(signals_.get(), &more, sizeof more) != sizeof more) continue;
      const std::uint64_t asked = more % one_hangup;
      const std::uint64_t before = std::exchange(count, asked == 0 ? std::max<std::uint64_t>(count, 1) : count + asked);
      if (!leaves && count >= 2) hand_back();
      if (before < 1) on_signal_(1);
      if (before < 2 && count >= 2) on_signal_(2);
      if (leaves && count > 2) leave();
    }
  }
  [[noreturn]] static void leave() {
    static constexpr std::string_view words =
        "hypertune: left without waiting for what does not return; all that was recorded is saved: resume it\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
    ::_exit(130);
  }

  std::function<void(int)> on_signal_;
  AfterSecondSignal after_;
  bool handed_back_ = false;
  detail::Descriptor signals_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, closing_{::eventfd(0, EFD_CLOEXEC)};
  std::array<struct sigaction, watched.size()> previous_{};
  std::thread thread_;
};

}  // namespace hypertune::inline v0
