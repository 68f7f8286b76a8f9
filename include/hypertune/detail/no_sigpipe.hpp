// Writing to a pipe or connection that has no reader, without being killed by SIGPIPE.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace hypertune::inline v0::detail {

/// During its lifetime, a write to a closed pipe or connection is an error for this thread and not a signal. A signal
/// that was pending before belongs to the program and is kept.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) != 0) return;  // it is blocked already
    const sigset_t pipe = only();
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    mine_ = sigismember(&before, SIGPIPE) == 0;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    if (!mine_) return;
    const sigset_t pipe = only();
    const timespec now{};
    while (sigtimedwait(&pipe, nullptr, &now) < 0 && errno == EINTR) {}
    pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  }

 private:
  static sigset_t only() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    return pipe;
  }
  bool mine_ = false;
};

}  // namespace hypertune::inline v0::detail
