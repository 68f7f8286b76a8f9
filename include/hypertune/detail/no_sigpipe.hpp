// Writing to what nobody reads any more, without dying of it.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace hypertune::inline v0::detail {

/// While it lives, a write to a pipe or connection that is gone is an error for this thread, and no signal. A signal
/// that was pending before is the program's own, and stays.
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
