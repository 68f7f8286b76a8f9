// ChildProcess: a command in a process group of its own, with its output in pipes.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/command_keeper.hpp>
#include <hypertune/local/process_tree.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::local::detail {

using hypertune::detail::Descriptor;

/// Used by one thread at a time. In a worker process it is a child of that process, and the kernel ends it with the
/// worker's main thread; elsewhere a CommandKeeper stands between, and ends it with this process.
class ChildProcess {
 public:
  /// Error of kind `usage` if the program cannot be run.
  ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
    auto [out_read, out_write] = make_pipe();
    auto [err_read, err_write] = make_pipe();
    auto [failed_read, failed_write] = make_pipe();
    std::array<int, 2> ends{-1, -1};
    const bool kept = !is_worker_process();
    if (kept && ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      fail(Errc::io, "cannot make a socket for the command: {}", std::generic_category().message(errno));
    Descriptor control(ends[0]), theirs(ends[1]);
    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> env;
    for (const auto& entry : environment) env.push_back(const_cast<char*>(entry.c_str()));
    env.push_back(nullptr);
    const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto execute = [&](pid_t parent) {  // only what is safe after a fork
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      if (::getppid() == parent) {
        for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::dup2(null.get(), STDIN_FILENO);
        ::dup2(out_write.get(), STDOUT_FILENO);
        ::dup2(err_write.get(), STDERR_FILENO);
        ::execvpe(argv[0], argv.data(), env.data());
        const int error = errno;
        static_cast<void>(!::write(failed_write.get(), &error, sizeof error));
      }
      ::_exit(127);
    };
    const pid_t self = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) fail(Errc::io, "cannot fork for the command: {}", std::generic_category().message(errno));
    if (pid_ == 0) {
      if (!kept) execute(self);
      const pid_t keeper = ::getpid();
      CommandKeeper(theirs.get(), self).run(failed_write.get(), [&] { execute(keeper); });
    }
    ::setpgid(pid_, pid_);
    failed_write = Descriptor();
    theirs = Descriptor();
    int error = 0;
    if (hypertune::detail::read_some(failed_read.get(), reinterpret_cast<char*>(&error), sizeof error) ==
        sizeof error) {
      control = Descriptor();
      wait_for(pid_);
      pid_ = -1;
      fail(Errc::usage, "cannot run '{}': {}", arguments.front(), std::generic_category().message(error));
    }
    out_ = std::move(out_read);
    err_ = std::move(err_read);
    kept_ = kept;
    exit_ = kept ? std::move(control) : Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Ends it by force, with all its group and all that it started.
  ~ChildProcess() {
    if (pid_ > 0 && !status_) {
      if (kept_)
        exit_ = Descriptor();  // the keeper ends it all
      else
        signal(SIGKILL);
      wait_for(pid_);
    }
    if (!kept_) sweep();
  }

  void signal(int number) const {
    if (pid_ <= 0 || status_) return;
    const std::int32_t word = number;
    if (kept_)
      ::send(exit_.get(), &word, sizeof word, MSG_NOSIGNAL);
    else
      ::kill(-pid_, number);
  }

  /// Waits for output or the exit, at most `seconds` (0: looks only). `out` and `err` take what came.
  void pump(double seconds, std::string& out, std::string& err) {
    std::array<pollfd, 3> polled{pollfd{.fd = out_ ? out_.get() : -1, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err_ ? err_.get() : -1, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = status_ ? -1 : exit_.get(), .events = POLLIN, .revents = 0}};
    const int wait = static_cast<int>(std::clamp(seconds, 0.0, 3600.0) * 1000);
    if (::poll(polled.data(), polled.size(), wait) <= 0) return;
    const bool exited = polled[2].revents != 0;
    if (exited) reap();
    // What the command wrote before its exit is in the pipes; who else holds them open does not matter any more.
    if (polled[0].revents != 0 || exited) take(out_, out, exited);
    if (polled[1].revents != 0 || exited) take(err_, err, exited);
  }

  /// Of wait(2), once it has exited.
  const std::optional<int>& status() const { return status_; }

 private:
  static std::pair<Descriptor, Descriptor> make_pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      fail(Errc::io, "cannot make a pipe for the command: {}", std::generic_category().message(errno));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }

  // One read, or (`all`) everything that is there.
  static void take(Descriptor& pipe, std::string& text, bool all) {
    if (!pipe) return;
    std::array<char, 65536> buffer;
    if (all) ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
    do {
      const ssize_t n = hypertune::detail::read_some(pipe.get(), buffer.data(), buffer.size());
      if (n <= 0) {
        pipe = Descriptor();
        return;
      }
      text.append(buffer.data(), static_cast<std::size_t>(n));
    } while (all);
  }

  static int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return status;
  }
  void reap() {
    if (!kept_) {
      ::kill(-pid_, SIGKILL);  // while the zombie keeps the group's number its own: what it left behind
      status_ = wait_for(pid_);
      return;
    }
    std::int32_t word = 0;
    const auto n = ::recv(exit_.get(), &word, sizeof word, 0);
    exit_ = Descriptor();
    const int own = wait_for(pid_);
    status_ = n == sizeof word ? word : own;  // it was killed, and the command with it
  }

  // A worker adopts orphans: those that left the group and outlived the command are here.
  static void sweep() {
    for (;;) {
      const auto orphans = children_of(::getpid());
      if (orphans.empty()) return;
      for (const pid_t orphan : orphans) {
        ::kill(orphan, SIGKILL);
        if (::waitpid(orphan, nullptr, 0) < 0 && errno == ECHILD) return;
      }
    }
  }

  pid_t pid_ = -1;  // of the command, or of its keeper
  bool kept_ = false;
  Descriptor out_, err_;
  Descriptor exit_;  // the keeper's control, or the command's pidfd
  std::optional<int> status_;
};

}  // namespace hypertune::local::detail
