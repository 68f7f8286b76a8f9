// KeeperProcess: a process between this process and a program, so that the program does not outlive this process.
#pragma once

#include <hypertune/process/process_tree.hpp>
#include <hypertune/process/supervisor.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace hypertune::inline v0::process {

/// Whether there is a KeeperProcess between a program and this process, and what it kills.
enum class Keeper : std::uint8_t {
  none,   ///< no keeper
  group,  ///< when this process dies: the program and its process group
  all     ///< the same, and whatever the program has started and left behind when it ends
};

/// In a forked process: reports to the forking process why the program was not started.
[[noreturn]] inline void tell_not_started(int failed, int error) {
  static_cast<void>(!::write(failed, &error, sizeof error));
  ::_exit(127);
}

/// Runs in a forked process of one thread. It forks the program, passes signals on to its group, and kills it when the
/// process that started it dies or closes `control` (a SOCK_SEQPACKET socket, which receives signal numbers and sends
/// the status of wait(2)). Without a keeper, a program's orphans could not be told from another program's, and the
/// kernel would kill the program when the thread that happened to start it ends.
class KeeperProcess {
 public:
  KeeperProcess(Keeper kind, int control, pid_t owner) : supervisor_(control, owner), adopts_(kind == Keeper::all) {}

  /// `execute` runs in the program's process and does not return. `failed`: the descriptor to which errno is written.
  template <class Execute>
  [[noreturn]] void run(int failed, const Execute& execute) {
    supervisor_.begin("ht-keeper", adopts_);
    program_ = ::fork();
    if (program_ == 0) execute();
    if (program_ < 0) tell_not_started(failed, errno);
    ::setpgid(program_, program_);
    close_others();
    supervisor_.watch([this] { return !reap(); }, [this] { return serve(); });
    if (!ended_) ::kill(-program_, SIGKILL);
    end_orphans();
    ::_exit(0);
  }

 private:
  // All other descriptors are the owner's: a pipe that this process held open would never end.
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

  // False if the owner no longer needs the program.
  bool serve() {
    std::int32_t number = 0;
    const auto n = ::recv(supervisor_.control(), &number, sizeof number, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n != sizeof number) return false;
    ::kill(-program_, number);
    return true;
  }

  // Returns whether the program itself has ended.
  bool reap() {
    for (;;) {
      // Looks before reaping: while the program is a zombie, no other process group can have its number.
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
      if (adopts_ && info.si_pid == program_) ::kill(-program_, SIGKILL);
      int status = 0;
      if (::waitpid(info.si_pid, &status, 0) != program_) continue;
      ended_ = true;
      end_orphans();
      const std::int32_t word = status;
      ::send(supervisor_.control(), &word, sizeof word, MSG_NOSIGNAL);
      return true;
    }
  }

  // Kills all children, and the children that each of them leaves to this process.
  static void end_orphans() {
    for (;;) {
      for (const pid_t child : children_of(::getpid())) ::kill(child, SIGKILL);
      const pid_t pid = ::waitpid(-1, nullptr, 0);
      if (pid < 0 && errno != EINTR) return;
    }
  }

  Supervisor supervisor_;
  bool adopts_;
  pid_t program_ = -1;
  bool ended_ = false;
};

}  // namespace hypertune::inline v0::process
