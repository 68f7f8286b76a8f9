// CommandKeeper: the process between a command and the thread that runs it, so that nothing of the command outlives it.
#pragma once

#include <hypertune/local/process_tree.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace hypertune::local::detail {

/// Whether this process is a worker of a Guardian: then it runs one command at a time, adopts what that leaves behind,
/// and dies with its driver, so that commands need no keeper.
inline bool& is_worker_process() {
  static bool worker = false;
  return worker;
}

/// Runs in a forked process of one thread. It forks the command, passes signals on to its group, adopts and ends what
/// the command leaves behind, and ends it all when the process that started it dies or closes `control` (a
/// SOCK_SEQPACKET socket; it takes signal numbers and is sent the status of wait(2)). Without it, a command of a
/// program with several trials could not be told from another's orphans, and the kernel would end it with the thread
/// that happened to start it.
class CommandKeeper {
 public:
  CommandKeeper(int control, pid_t owner) : control_(control), owner_(owner) {}

  /// `execute` runs in the command's process and does not return. `exec_failed`: where it writes errno to.
  template <class Execute>
  [[noreturn]] void run(int exec_failed, const Execute& execute) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    ::prctl(PR_SET_NAME, "ht-keeper", 0, 0, 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP})
      ::signal(signal, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_SETMASK, &set, nullptr);
    signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    // Wakes the loop when the owner's thread dies; the loop sees whether the owner did.
    ::prctl(PR_SET_PDEATHSIG, SIGCHLD, 0, 0, 0);
    command_ = ::fork();
    if (command_ == 0) execute();
    if (command_ < 0) {
      const int error = errno;
      static_cast<void>(!::write(exec_failed, &error, sizeof error));
      ::_exit(127);
    }
    ::setpgid(command_, command_);
    close_others();
    while (::getppid() == owner_ && !ended_) {
      std::array<pollfd, 2> polled{pollfd{.fd = control_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = signals_, .events = POLLIN, .revents = 0}};
      const int ready = ::poll(polled.data(), polled.size(), 1000);
      if (ready < 0 && errno != EINTR) break;
      if (ready <= 0) continue;
      if (polled[1].revents != 0) {
        signalfd_siginfo info;
        while (::read(signals_, &info, sizeof info) > 0) {}
        reap();
      }
      if (polled[0].revents != 0 && !serve()) break;
    }
    if (!ended_) ::kill(-command_, SIGKILL);
    end_orphans();
    ::_exit(0);
  }

 private:
  // Every other descriptor is the owner's: a pipe that this process held open would never end.
  void close_others() {
    const auto low = static_cast<unsigned>(control_ < signals_ ? control_ : signals_);
    const auto high = static_cast<unsigned>(control_ < signals_ ? signals_ : control_);
    const auto close_range = [](unsigned first, unsigned last) {
      if (first <= last) ::syscall(SYS_close_range, first, last, 0U);
    };
    if (low > 0) close_range(0, low - 1);
    close_range(low + 1, high - 1);
    close_range(high + 1, ~0U);
  }

  // False: the owner is done with the command.
  bool serve() {
    std::int32_t number = 0;
    const auto n = ::recv(control_, &number, sizeof number, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n != sizeof number) return false;
    ::kill(-command_, number);
    return true;
  }

  void reap() {
    for (;;) {
      // Look before reaping: while the command is a zombie, its group's number cannot be anybody else's.
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      if (info.si_pid == command_) ::kill(-command_, SIGKILL);
      int status = 0;
      if (::waitpid(info.si_pid, &status, 0) != command_) continue;
      end_orphans();
      const std::int32_t word = status;
      ::send(control_, &word, sizeof word, MSG_NOSIGNAL);
      ended_ = true;
      return;
    }
  }

  // All children, and the children that each of them leaves to us.
  static void end_orphans() {
    for (;;) {
      for (const pid_t child : children_of(::getpid())) ::kill(child, SIGKILL);
      const pid_t pid = ::waitpid(-1, nullptr, 0);
      if (pid < 0 && errno != EINTR) return;
    }
  }

  int control_;
  pid_t owner_;
  int signals_ = -1;
  pid_t command_ = -1;
  bool ended_ = false;
};

}  // namespace hypertune::local::detail
