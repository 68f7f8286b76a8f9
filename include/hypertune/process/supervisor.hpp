// Supervisor: the common part of the processes that stand between a program and the processes it starts.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace hypertune::inline v0::process {

/// The loop of a forked process of one thread that ends with its owner. It may adopt the orphans of its children, is
/// notified when children end, and serves its owner's socket `control`. Signals meant for the program do not reach it.
class Supervisor {
 public:
  Supervisor(int control, pid_t owner) : control_(control), owner_(owner) {}

  /// Makes the calling process a supervisor; `name` has at most 15 characters and is shown by ps. To be called before
  /// there are children.
  void begin(const char* name, bool adopts = true) {
    ::setpgid(0, 0);  // Ctrl-C in the terminal is for the owner
    if (adopts) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    ::prctl(PR_SET_NAME, name, 0, 0, 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP})
      ::signal(signal, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_SETMASK, &set, nullptr);
    signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    // The end of the owner wakes the loop, which then sees that it has another parent. (The kernel also sends the
    // signal when the thread that forked ends; the parent is then the same.)
    ::prctl(PR_SET_PDEATHSIG, SIGCHLD, 0, 0, 0);
  }

  /// Calls `reap` when children have ended (and once a second) and `serve` when the owner has sent something or closed
  /// its end, until one of them returns false or the owner is gone.
  template <class Reap, class Serve>
  void watch(const Reap& reap, const Serve& serve) {
    while (::getppid() == owner_) {
      std::array<pollfd, 2> polled{pollfd{.fd = control_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
      const int ready = ::poll(polled.data(), polled.size(), 1000);
      if (ready < 0 && errno != EINTR) return;
      if (ready == 0 && !reap()) return;
      if (ready <= 0) continue;
      if (polled[1].revents != 0) {
        signalfd_siginfo info;
        while (::read(signals_, &info, sizeof info) > 0) {}
        if (!reap()) return;
      }
      if (polled[0].revents != 0 && !serve()) return;
    }
  }

  int control() const { return control_; }
  int signals() const { return signals_; }  ///< the descriptor that reports the ends of children

 private:
  int control_;
  pid_t owner_;
  int signals_ = -1;
};

}  // namespace hypertune::inline v0::process
