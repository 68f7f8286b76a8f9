// The guardian's process, and the driver's messages to it.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/guardian.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/process/supervisor.hpp>

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
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// The code of the guardian's process. It has only one thread, so that forking is safe.
class GuardianProcess {
 public:
  GuardianProcess(int control, pid_t driver, const WorkerMain& worker_main, const std::function<void()>& at_end)
      : supervisor_(control, driver), worker_main_(worker_main), at_end_(at_end) {}

  [[noreturn]] void run() {
    supervisor_.begin("ht-guardian");
    const auto reap_all = [this] {
      reap();
      return true;
    };
    supervisor_.watch(reap_all, [this] { return serve(); });
    end_everything();
    if (at_end_) at_end_();
    ::_exit(0);
  }

 private:
  // Serves one request. False: the driver is gone or done.
  bool serve() {
    GuardianRequest request;
    iovec part{&request, sizeof request};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    const ssize_t n = ::recvmsg(supervisor_.control(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n != sizeof request) return false;
    Descriptor socket;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      socket = Descriptor(fd);
    }
    switch (request.what) {
      case GuardianRequest::What::spawn: spawn(request.id, socket.get()); return true;
      case GuardianRequest::What::kill:
        if (const auto found = workers_.find(request.id); found != workers_.end()) end_group(found->second);
        return true;
      default: return false;
    }
  }

  void spawn(std::uint64_t id, int socket) {
    const pid_t guardian = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become_worker(guardian, socket);
    if (pid < 0) {
      reply({GuardianReply::What::failed, id, 0, errno});
      return;
    }
    ::setpgid(pid, pid);  // the child does the same: either may be first
    workers_[id] = pid;
    reply({GuardianReply::What::spawned, id, pid, 0});
  }

  [[noreturn]] void become_worker(pid_t guardian, int socket) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != guardian) ::_exit(3);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // so that the worker adopts orphans of its trial's command
    ::prctl(PR_SET_NAME, "ht-worker", 0, 0, 0);
    is_worker_process() = true;
    ::close(supervisor_.control());
    ::close(supervisor_.signals());
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    ::signal(SIGPIPE, SIG_IGN);
    count_sigterms();
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0) {
      ::dup2(null, STDIN_FILENO);
      ::close(null);
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a crash loses at most a line
    int code = 1;
    try {
      code = worker_main_(socket);
    } catch (const std::exception& e) { std::fprintf(stderr, "hypertune worker: %s\n", e.what()); }
    std::fflush(nullptr);
    ::_exit(code);  // without destroying static objects, which belong to the driver
  }

  void reply(const GuardianReply& reply) {
    while (::send(supervisor_.control(), &reply, sizeof reply, MSG_NOSIGNAL) < 0 && errno == EINTR) {}
  }

  static void end_group(pid_t pid) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
  }

  void reap() {
    for (int status = 0;;) {
      // Kill the group before reaping: while the process is a zombie, the ids of the process and its group cannot be
      // reused.
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
      ::kill(-info.si_pid, SIGKILL);
      const pid_t pid = ::waitpid(info.si_pid, &status, 0);
      if (pid <= 0) break;
      const auto found = std::find_if(workers_.begin(), workers_.end(), [&](const auto& w) { return w.second == pid; });
      if (found == workers_.end()) continue;
      if (ended_.empty()) ended_since_ = Clock::now();
      ended_.push_back({GuardianReply::What::exited, found->first, pid, status});
      workers_.erase(found);
    }
    // Report a worker's end only once its orphans are gone, too: a command that is killed with its worker may hold
    // memory, files and devices a moment longer, which the trial's next attempt needs. But do not wait for ever for
    // processes that the kernel cannot end.
    constexpr auto patience = std::chrono::seconds(5);
    if (end_orphans() && Clock::now() < ended_since_ + patience) return;
    for (const auto& ended : ended_) reply(ended);
    ended_.clear();
  }

  // Kills orphans of dead workers, which are children of this process now. Returns whether there were any.
  bool end_orphans() {
    bool any = false;
    for (const pid_t child : process::children_of(::getpid())) {
      const bool worker =
          std::any_of(workers_.begin(), workers_.end(), [&](const auto& w) { return w.second == child; });
      if (!worker) end_group(child);
      any = any || !worker;
    }
    return any;
  }

  void end_everything() {
    for (const auto& [id, pid] : workers_) end_group(pid);
    workers_.clear();
    for (;;) {  // each process that dies may leave its children to this one
      end_orphans();
      const pid_t pid = ::waitpid(-1, nullptr, 0);
      if (pid < 0 && errno != EINTR) return;
    }
  }

  process::Supervisor supervisor_;
  const WorkerMain& worker_main_;
  const std::function<void()>& at_end_;
  std::map<std::uint64_t, pid_t> workers_;
  std::vector<GuardianReply> ended_;  // workers whose end is still to be reported
  using Clock = std::chrono::steady_clock;
  Clock::time_point ended_since_;
};

Guardian::Guardian(const WorkerMain& worker_main, const std::function<void()>& at_end,
                   const std::function<void(int control)>& at_begin) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail(Errc::io, "cannot make a socket for worker processes: {}", std::generic_category().message(errno));
  Descriptor mine(ends[0]);
  Descriptor theirs(ends[1]);
  std::fflush(nullptr);  // otherwise each worker would print the buffered output again
  const pid_t driver = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail(Errc::io, "cannot fork the workers' guardian: {}", std::generic_category().message(errno));
  if (pid_ == 0) {
    ::close(ends[0]);
    if (at_begin) at_begin(ends[1]);
    GuardianProcess(ends[1], driver, worker_main, at_end).run();
  }
  control_ = std::move(mine);
  ::fcntl(control_.get(), F_SETFL, O_NONBLOCK);
}

Guardian::~Guardian() {
  request({GuardianRequest::What::quit, 0});
  control_ = Descriptor();
#ifdef SYS_pidfd_open
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (handle) {
    pollfd polled{.fd = handle.get(), .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, 10000) == 0) ::kill(pid_, SIGKILL);
  }
#endif
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

bool Guardian::wake() {
  siginfo_t info{};
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);
  return found == 0 && info.si_pid == pid_ && ::kill(pid_, SIGCONT) == 0;
}

std::optional<GuardianReply> Guardian::reply(bool& lost) {
  GuardianReply reply;
  const ssize_t n = ::recv(control_.get(), &reply, sizeof reply, 0);
  if (n == sizeof reply) return reply;
  if (n >= 0 || (errno != EAGAIN && errno != EINTR)) lost = true;
  return std::nullopt;
}

bool Guardian::request(const GuardianRequest& request, int socket) {
  iovec part{const_cast<GuardianRequest*>(&request), sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (socket >= 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof socket);
    std::memcpy(CMSG_DATA(header), &socket, sizeof socket);
  }
  for (;;) {
    if (::sendmsg(control_.get(), &message, MSG_NOSIGNAL) >= 0) return true;
    if (errno == EAGAIN) {  // the socket is full: the guardian is busy forking
      pollfd polled{.fd = control_.get(), .events = POLLOUT, .revents = 0};
      if (::poll(&polled, 1, 5000) > 0) continue;
      return false;
    }
    if (errno != EINTR) return false;
  }
}

}  // namespace hypertune::inline v0::local::detail
