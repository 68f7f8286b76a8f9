// LocalProcess: starting, feeding and ending a program of this machine.
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/detail/local_process.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;  // NOLINT: unistd.h has it with _GNU_SOURCE only

namespace hypertune::remote::detail {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int poll_milliseconds(double until) {
  return static_cast<int>(std::clamp((until - steady_seconds()) * 1000 + 1, 0.0, 3.6e6));
}

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Errc::io, "cannot make a pipe: {}; are too many files open (ulimit -n)?",
         std::generic_category().message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Starts a program, found in PATH, in a process group of its own. errno if it cannot be started.
static int spawn(const std::vector<std::string>& arguments, int in, int out, int err, pid_t& pid) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  // Above the three first, so that none overwrites another.
  const Descriptor in_copy(::fcntl(in, F_DUPFD_CLOEXEC, 3)), out_copy(::fcntl(out, F_DUPFD_CLOEXEC, 3)),
      err_copy(::fcntl(err, F_DUPFD_CLOEXEC, 3));
  ::posix_spawn_file_actions_adddup2(&files, in_copy.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out_copy.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, err_copy.get(), STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
#endif
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

/// In a forked process: writes the error to `failed`, for who forked it.
[[noreturn]] inline void tell_not_started(int failed, int error) {
  static_cast<void>(!::write(failed, &error, sizeof error));
  ::_exit(127);
}

[[noreturn]] inline void become(char** argv, int in, int out, int err, int failed) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  const int kept = 3;
  if (failed != kept) ::dup2(failed, kept);
  ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_close_range, 4U, ~0U, 0U);
  ::execvp(argv[0], argv);
  tell_not_started(kept, errno);
}

/// What stands between this program and one that must not outlive it: a process of one thread, the leader of the other
/// one's group, which ends as that does, or takes all of the group with it when its owner is gone.
class GroupKeeper {
 public:
  /// In a forked process. `failed`: where errno is written to if the program cannot be started.
  [[noreturn]] static void run(char** argv, pid_t owner, int in, int out, int err, int failed) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, "ht-keeper", 0, 0, 0);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    sigaddset(&heard, SIGUSR1);
    ::sigprocmask(SIG_SETMASK, &heard, nullptr);
    // Of the thread that forked: it waits for the program's end, so that its own end is that of the owner.
    ::prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    if (::getppid() != owner) ::_exit(127);
    const pid_t program = ::fork();
    if (program == 0) become(argv, in, out, err, failed);
    if (program < 0) tell_not_started(failed, errno);
    ::syscall(SYS_close_range, 0U, ~0U, 0U);  // a pipe that this process held open would never end
    for (;;) {
      int signal = 0;
      ::sigwait(&heard, &signal);
      if (::getppid() != owner) ::kill(0, SIGKILL);
      int status = 0;
      if (::waitpid(program, &status, WNOHANG) == program) end_like(status);
    }
  }

 private:
  [[noreturn]] static void end_like(int status) {
    if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // its core would say nothing
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::kill(::getpid(), WTERMSIG(status));
    ::_exit(128 + WTERMSIG(status));
  }
};

/// As spawn(), and the program ends with this one, whatever the way, and with it what of its group still runs. The
/// calling thread must wait for its end.
static int spawn_bound(const std::vector<std::string>& arguments, int in, int out, int err, pid_t& pid) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // Above the three first, so that none overwrites another.
  const Descriptor in_copy(::fcntl(in, F_DUPFD_CLOEXEC, 3)), out_copy(::fcntl(out, F_DUPFD_CLOEXEC, 3)),
      err_copy(::fcntl(err, F_DUPFD_CLOEXEC, 3));
  auto [failed_read, failed_write] = make_pipe();
  Descriptor failed_copy(::fcntl(failed_write.get(), F_DUPFD_CLOEXEC, 3));
  failed_write = Descriptor();
  const pid_t self = ::getpid();
  pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) GroupKeeper::run(argv.data(), self, in_copy.get(), out_copy.get(), err_copy.get(), failed_copy.get());
  ::setpgid(pid, pid);  // it does so too: whoever is first
  failed_copy = Descriptor();
  int error = 0;
  if (hypertune::detail::read_some(failed_read.get(), reinterpret_cast<char*>(&error), sizeof error) != sizeof error)
    return 0;
  wait_for(pid);
  pid = -1;
  return error;
}

ProcessOutcome run_process(const std::vector<std::string>& arguments, const NextInput& next, const TakeOutput& take_out,
                           const TakeOutput& take_err, const ProcessBounds& bounds,
                           const std::function<void(int)>& not_started) {
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  ::fcntl(in_write.get(), F_SETPIPE_SZ, 1 << 20);  // fewer switches between the two sides; as far as it is allowed
  ::fcntl(out_read.get(), F_SETPIPE_SZ, 1 << 20);
  pid_t pid = -1;
  const auto start = bounds.bound ? spawn_bound : spawn;
  if (const int error = start(arguments, in_read.get(), out_write.get(), err_write.get(), pid); error != 0) {
    not_started(error);
    fail(Errc::io, "cannot run '{}': {}", arguments.front(), std::generic_category().message(error));
  }
  in_read = Descriptor();
  out_write = Descriptor();
  err_write = Descriptor();
  for (const auto* end : {&in_write, &out_read, &err_read}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  // A write into a pipe that nobody reads must be an error here, not a signal for the program.
  const hypertune::detail::NoSigpipe no_sigpipe;
  struct Ended {  // whatever is thrown on the way: no process is left
    ~Ended() {
      if (pid <= 0) return;
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
      wait_for(pid);
    }
    pid_t pid;
  } ended{pid};
  const Descriptor exit_event(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!exit_event) fail(Errc::io, "cannot watch '{}': {}", arguments.front(), std::generic_category().message(errno));

  std::optional<std::stop_callback<std::function<void()>>> on_stop;  // while its number is its own
  on_stop.emplace(bounds.stop, std::function<void()>([pid] { ::kill(-pid, SIGKILL); }));
  ProcessOutcome outcome;
  const double begin = steady_seconds();
  double until = begin + bounds.deadline, moved = begin;
  bool exited = false, more_input = true;
  std::string_view piece;
  std::size_t out_size = 0, err_size = 0;
  const auto buffer = std::make_unique_for_overwrite<char[]>(std::size_t{256} << 10U);
  const auto kill_now = [&] {
    ::kill(-pid, SIGTERM);
    ::kill(-pid, SIGKILL);
  };
  const auto read_from = [&](Descriptor& end, const TakeOutput& take, std::size_t& size) {
    const ssize_t n = hypertune::detail::read_some(end.get(), buffer.get(), std::size_t{256} << 10U);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      end = Descriptor();
      return;
    }
    moved = steady_seconds();
    size += static_cast<std::size_t>(n);
    if (size > bounds.max_output || !take(std::string_view(buffer.get(), static_cast<std::size_t>(n)))) {
      outcome.too_much = true;
      kill_now();
      end = Descriptor();
    }
  };
  while (!exited || out_read || err_read) {
    if (in_write && piece.empty() && more_input) {
      piece = next ? next() : std::string_view();
      more_input = !piece.empty();
      if (!more_input) in_write = Descriptor();
    }
    std::array<pollfd, 4> polled{pollfd{.fd = exited ? -1 : exit_event.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = in_write ? in_write.get() : -1, .events = POLLOUT, .revents = 0},
                                 pollfd{.fd = out_read ? out_read.get() : -1, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err_read ? err_read.get() : -1, .events = POLLIN, .revents = 0}};
    const double bound = std::min(until, exited ? until : moved + bounds.stall);
    const int ready = ::poll(polled.data(), polled.size(), poll_milliseconds(bound));
    if (ready < 0 && errno != EINTR) fail(Errc::io, "cannot poll: {}", std::generic_category().message(errno));
    if (ready <= 0) {
      if (steady_seconds() < bound) continue;
      if (exited || outcome.late) break;  // who else holds its pipes open does not matter
      outcome.late = true;
      kill_now();
      until = steady_seconds() + 2;
      moved = until;
      continue;
    }
    if (polled[1].revents != 0) {
      const ssize_t n = ::write(in_write.get(), piece.data(), piece.size());
      if (n > 0) {
        piece.remove_prefix(static_cast<std::size_t>(n));
        moved = steady_seconds();
      } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        outcome.input_cut = true;
        in_write = Descriptor();
        more_input = false;
      }
    }
    if (polled[2].revents != 0) read_from(out_read, take_out, out_size);
    if (polled[3].revents != 0) read_from(err_read, take_err, err_size);
    if (polled[0].revents != 0 && !exited) {
      exited = true;
      outcome.input_cut = outcome.input_cut || static_cast<bool>(in_write);
      in_write = Descriptor();
      more_input = false;
      until = steady_seconds() + 1;  // for what is still in its pipes
    }
  }
  if (!exited) ::kill(pid, SIGKILL);
  on_stop.reset();
  outcome.status = wait_for(pid);
  ended.pid = -1;
  return outcome;
}

std::optional<Printed> printed_by(const std::vector<std::string>& arguments, double timeout,
                                  const std::stop_token& stop) {
  Printed printed;
  const auto into = [](std::string& text) {
    return [&text](std::string_view bytes) {
      text += bytes;
      return true;
    };
  };
  struct NotStarted {};
  try {
    const auto outcome =
        run_process(arguments, {}, into(printed.out), into(printed.err),
                    // Lists are waited for before anybody hears a Ctrl-C.
                    {.deadline = timeout, .max_output = std::size_t{16} << 20U, .stop = stop, .bound = true},
                    [](int) { throw NotStarted(); });
    printed.exit = outcome.exit_code();
    printed.late = outcome.late;
  } catch (const NotStarted&) { return std::nullopt; }
  return printed;
}

std::string last_line(std::string_view messages) {
  std::string found;
  while (!messages.empty()) {
    const auto end = std::min(messages.find('\n'), messages.size());
    std::string line;
    for (const char c : messages.substr(0, end))
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) line += c;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (line.find_first_not_of(" @-=*#") != std::string::npos) found = std::move(line);
    messages.remove_prefix(std::min(end + 1, messages.size()));
  }
  if (found.size() > 300) {
    std::size_t end = 297;  // not within a character of several bytes
    while (end > 0 && (static_cast<unsigned char>(found[end]) & 0xC0U) == 0x80U) --end;
    found = found.substr(0, end) + "…";
  }
  return found;
}

}  // namespace hypertune::remote::detail
