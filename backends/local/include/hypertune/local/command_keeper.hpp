// CommandKeeper: the process between a command and the thread that runs it, so that nothing of the command outlives it.
#pragma once

#include <hypertune/local/process_tree.hpp>
#include <hypertune/local/supervisor.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
  CommandKeeper(int control, pid_t owner) : supervisor_(control, owner) {}

  /// `execute` runs in the command's process and does not return. `exec_failed`: where it writes errno to.
  template <class Execute>
  [[noreturn]] void run(int exec_failed, const Execute& execute) {
    supervisor_.begin("ht-keeper");
    command_ = ::fork();
    if (command_ == 0) execute();
    if (command_ < 0) {
      const int error = errno;
      static_cast<void>(!::write(exec_failed, &error, sizeof error));
      ::_exit(127);
    }
    ::setpgid(command_, command_);
    close_others();
    supervisor_.watch([this] { return !reap(); }, [this] { return serve(); });
    if (!ended_) ::kill(-command_, SIGKILL);
    end_orphans();
    ::_exit(0);
  }

 private:
  // Every other descriptor is the owner's: a pipe that this process held open would never end.
  void close_others() {
    const auto [low, high] =
        std::minmax({static_cast<unsigned>(supervisor_.control()), static_cast<unsigned>(supervisor_.signals())});
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
    const auto n = ::recv(supervisor_.control(), &number, sizeof number, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n != sizeof number) return false;
    ::kill(-command_, number);
    return true;
  }

  // Whether the command itself has ended.
  bool reap() {
    for (;;) {
      // Look before reaping: while the command is a zombie, its group's number cannot be anybody else's.
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
      if (info.si_pid == command_) ::kill(-command_, SIGKILL);
      int status = 0;
      if (::waitpid(info.si_pid, &status, 0) != command_) continue;
      ended_ = true;
      end_orphans();
      const std::int32_t word = status;
      ::send(supervisor_.control(), &word, sizeof word, MSG_NOSIGNAL);
      return true;
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

  Supervisor supervisor_;
  pid_t command_ = -1;
  bool ended_ = false;
};

}  // namespace hypertune::local::detail
