// Subprocess: starts a program on this machine, exchanges data with it, and ends it, whatever is thrown meanwhile.
#pragma once

// Everything that hypertune starts is started here. Boost.Process v2 (1.81) was considered and is not sufficient: its
// pipe that reports a failed exec does not have O_CLOEXEC from its creation, so that two threads that start programs
// wait for each other's; in the child it calls exit(), which runs this program's own handlers; it needs an io_context,
// which the trials' side does not have; and it has no process in between (Keeper). Only its fork() and execve() would
// be of use.

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/error.hpp>
#include <hypertune/process/keeper.hpp>

#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

extern "C" char** environ;  // NOLINT: unistd.h has it with _GNU_SOURCE only

namespace hypertune::inline v0::process {

using hypertune::detail::Descriptor;

/// The program does not exist or cannot be run.
class NotStarted : public Error {
 public:
  NotStarted(const std::string& program, int error)
      : Error(Errc::usage, fmt::format("cannot run '{}': {}", program, std::generic_category().message(error))),
        why_(std::generic_category().message(error)) {}
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

/// What one of a program's standard streams is: one of these, or a descriptor, which remains the caller's.
struct Stream {
  static constexpr int null = -1, inherited = -2, pipe = -3;
};

/// The process group of a program, which decides which signals of the terminal and of kill(2) reach it.
enum class Group : std::uint8_t { own, session, shared };

struct SpawnOptions {
  int in = Stream::null, out = Stream::null, err = Stream::null;
  /// Added to this process's environment; a variable without a value is removed.
  std::map<std::string, std::optional<std::string>> environment = {};
  Group group = Group::own;
  /// Sent to the program when the thread that started it ends (so the kernel defines it): that thread must last as
  /// long.
  int death_signal = 0;
  Keeper keeper = Keeper::none;
  bool keep_descriptors = false;  ///< it inherits the descriptors of this process that are not close-on-exec
  /// Called in the program's process before exec; must do only what is safe after a fork. Returns 0 or an errno.
  std::function<int()> prepare = {};
};

inline int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

/// For a status of wait(2): the exit code, or 128 + the signal.
inline int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

namespace detail {

/// Everything that the new process needs, prepared before the fork.
class Launch {
 public:
  Launch(const std::vector<std::string>& arguments, const SpawnOptions& options) : options_(options) {
    if (arguments.empty() || arguments.front().empty()) fail(Errc::usage, "there is no program to run");
    for (const auto& argument : arguments) argv_.push_back(const_cast<char*>(argument.c_str()));
    argv_.push_back(nullptr);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (!options.environment.contains(std::string(text.substr(0, text.find('='))))) variables_.emplace_back(text);
    }
    for (const auto& [name, value] : options.environment)
      if (value) variables_.push_back(name + "=" + *value);
    for (auto& variable : variables_) env_.push_back(variable.data());
    env_.push_back(nullptr);
  }

  /// `ours`: is set to this process's end, if it is a pipe.
  void set_stream(std::size_t number, int what, Descriptor& ours) {
    Descriptor theirs;
    if (what == Stream::inherited) return;
    if (what == Stream::null) theirs = hypertune::detail::open_at(AT_FDCWD, "/dev/null", O_RDWR);
    if (what == Stream::pipe) {
      std::tie(theirs, ours) = hypertune::detail::make_pipe();
      if (number != 0) std::swap(theirs, ours);
    }
    streams_[number] = above_streams(what >= 0 ? what : theirs.get());
  }

  /// In the forked process: becomes the program, as a child of `parent`. Does only what is safe after a fork of a
  /// program with threads.
  [[noreturn]] void become(pid_t parent) const {
    if (options_.group == Group::own) ::setpgid(0, 0);
    if (options_.group == Group::session) ::setsid();
    const int death_signal = options_.keeper == Keeper::none ? options_.death_signal : SIGKILL;
    if (death_signal != 0) {
      ::prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0);
      if (::getppid() != parent) ::_exit(127);
    }
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    for (std::size_t number = 0; number < streams_.size(); ++number)
      if (streams_[number]) ::dup2(streams_[number].get(), static_cast<int>(number));
    // Only at exec, so that a failure of exec can still be reported.
    if (!options_.keep_descriptors) ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    int error = options_.prepare ? options_.prepare() : 0;
    if (error == 0) {
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::execvpe(argv_[0], argv_.data(), env_.data());
      error = errno;
    }
    tell_not_started(failed_.get(), error);
  }

  /// Returns the process's number; throws NotStarted. `control`: is set to the socket of the keeper, if there is one.
  pid_t start(Descriptor& control) {
    Descriptor failed, theirs;
    std::tie(failed, failed_) = hypertune::detail::make_pipe();
    failed_ = above_streams(failed_.get());
    if (options_.keeper != Keeper::none) {
      std::array<int, 2> ends{-1, -1};
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        fail(Errc::io, "cannot make a socket for '{}': {}", argv_[0], std::generic_category().message(errno));
      control = Descriptor(ends[0]);
      theirs = Descriptor(ends[1]);
    }
    pid_t pid = -1;
    int why = 0;
    {
      const hypertune::detail::SignalBlock block;  // no handler of this program may run in the new process
      pid = options_.keeper == Keeper::none ? vfork_program() : fork_keeper(theirs.get());
      why = errno;
    }
    if (pid < 0) fail(Errc::io, "cannot fork for '{}': {}", argv_[0], std::generic_category().message(why));
    failed_ = Descriptor();
    theirs = Descriptor();
    int error = 0;
    if (hypertune::detail::read_some(failed.get(), reinterpret_cast<char*>(&error), sizeof error) != sizeof error)
      return pid;
    control = Descriptor();
    wait_for(pid);
    throw NotStarted(argv_[0], error);
  }

 private:
  static Descriptor above_streams(int fd) {
    Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) fail(Errc::io, "cannot prepare a program's streams: {}", std::generic_category().message(errno));
    return copy;
  }

  // Copies nothing of this program, however large it is. This is a separate function so that vfork(), which returns
  // twice, cannot affect the variables of another function.
  [[gnu::noinline]] pid_t vfork_program() const {
    const pid_t self = ::getpid();
    const pid_t pid = ::vfork();  // NOLINT
    if (pid == 0) become(self);   // NOLINT(clang-analyzer-unix.Vfork)
    return pid;
  }

  pid_t fork_keeper(int control) const {
    const pid_t self = ::getpid(), pid = ::fork();
    if (pid == 0)
      KeeperProcess(options_.keeper, control, self).run(failed_.get(), [keeper = ::getpid(), this] { become(keeper); });
    return pid;
  }

  const SpawnOptions& options_;
  std::vector<char*> argv_, env_;
  std::vector<std::string> variables_;
  std::array<Descriptor, 3> streams_;
  Descriptor failed_;
};

}  // namespace detail

/// A process that was started, or none. To be used by one thread at a time, except for signal(), which any thread may
/// call until the process was waited for. The destructor kills the process.
class Subprocess {
 public:
  Subprocess() = default;
  /// `arguments`: the program first, looked up in PATH. Throws NotStarted.
  explicit Subprocess(const std::vector<std::string>& arguments, const SpawnOptions& options = {}) : Subprocess() {
    detail::Launch launch(arguments, options);
    launch.set_stream(0, options.in, in);
    launch.set_stream(1, options.out, out);
    launch.set_stream(2, options.err, err);
    pid_ = launch.start(exit_);
    kept_ = options.keeper != Keeper::none;
    alone_ = options.group == Group::shared;
    if (!kept_) exit_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!exit_) fail(Errc::io, "cannot watch '{}': {}", arguments.front(), std::generic_category().message(errno));
  }
  Subprocess(Subprocess&& other) noexcept { *this = std::move(other); }
  Subprocess& operator=(Subprocess&& other) noexcept {
    std::swap(in, other.in);
    std::swap(out, other.out);
    std::swap(err, other.err);
    std::swap(pid_, other.pid_);
    std::swap(kept_, other.kept_);
    std::swap(alone_, other.alone_);
    std::swap(exit_, other.exit_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~Subprocess() { end(); }

  Descriptor in, out, err;  ///< this process's ends of the streams that are pipes

  pid_t pid() const { return pid_; }                            ///< of the program, or of its keeper
  int exit_event() const { return exit_.get(); }                ///< can be read from when the process has ended
  const std::optional<int>& status() const { return status_; }  ///< of wait(2), once the process was waited for

  /// Sends a signal to its group, or only to the process itself if it shares this process's group.
  void signal(int number) const {
    if (pid_ <= 0 || status_) return;
    const std::int32_t word = number;
    if (kept_)
      ::send(exit_.get(), &word, sizeof word, MSG_NOSIGNAL);
    else
      ::kill(alone_ ? pid_ : -pid_, number);
  }

  struct Ready {
    bool in = false, out = false, err = false, exited = false;
    explicit operator bool() const { return in || out || err || exited; }
  };
  /// Waits until something can be read, the process has ended, or (`to_write`) something can be written; at most
  /// `seconds`, or until a signal arrives.
  Ready ready(double seconds, bool to_write = false) const {
    std::array<pollfd, 4> polled{pollfd{.fd = to_write && in ? in.get() : -1, .events = POLLOUT, .revents = 0},
                                 pollfd{.fd = out ? out.get() : -1, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err ? err.get() : -1, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = exit_ ? exit_.get() : -1, .events = POLLIN, .revents = 0}};
    const int ms = static_cast<int>(std::clamp(seconds * 1000 + 0.999, 0.0, 3.6e6));
    if (::poll(polled.data(), polled.size(), ms) <= 0) return {};
    return {polled[0].revents != 0, polled[1].revents != 0, polled[2].revents != 0, polled[3].revents != 0};
  }

  /// Waits for its end; returns its status of wait(2).
  int wait() {
    if (pid_ <= 0 || status_) return status_.value_or(0);
    std::int32_t word = 0;
    ssize_t told = -1;
    if (kept_) {
      // ECONNRESET, which is told once and before the status: the keeper has ended without reading all signals.
      do told = ::recv(exit_.get(), &word, sizeof word, 0);
      while (told < 0 && (errno == EINTR || errno == ECONNRESET));
    }
    exit_ = Descriptor();
    const int own = wait_for(pid_);
    status_ = told == sizeof word ? word : own;  // otherwise the keeper was killed, and the program with it
    return *status_;
  }

  /// Waits for its end, at most `grace` seconds, then kills it and its group.
  void end(double grace = 0) {
    if (pid_ <= 0 || status_) return;
    const double until = hypertune::detail::steady_seconds() + grace;
    for (double left = grace; left > 0; left = until - hypertune::detail::steady_seconds()) {
      pollfd polled{.fd = exit_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&polled, 1, static_cast<int>(std::min(left, 3600.0) * 1000) + 1) > 0)
        break;  // else late, or a signal came
    }
    signal(SIGKILL);
    wait();
  }

 private:
  pid_t pid_ = -1;
  bool kept_ = false, alone_ = false;
  Descriptor exit_;  // the keeper's control, or the program's pidfd
  std::optional<int> status_;
};

/// Options for running a program to its end.
struct RunOptions {
  using Take = std::function<bool(std::string_view)>;

  SpawnOptions spawn = {};                       ///< its streams are pipes, whatever is set here
  std::function<std::string_view()> input = {};  ///< returns pieces of its standard input (see whole()); empty: no more
  bool hold_input = false;                       ///< its standard input stays open until it ends
  Take take_out = {}, take_err = {};             ///< receive pieces of its output; false: enough, it is killed
  double deadline = 60;                          ///< seconds until it is killed
  double stall = 1e9;                            ///< seconds without any data until it is killed
  double linger = 0.2;  ///< seconds to read on after its end, if other processes hold its pipes
  std::size_t max_output = std::size_t{64} << 20U;  ///< bytes of either stream; with more, it is killed
  /// Bytes of either stream that collect() keeps. The rest is dropped, and the program goes on.
  std::size_t max_kept = std::numeric_limits<std::size_t>::max();
  std::stop_token stop = {};  ///< kills it
};

/// An input for RunOptions: all of `text`, which must live as long.
inline std::function<std::string_view()> whole(std::string_view text) {
  return [text]() mutable { return std::exchange(text, {}); };
}

/// How a program ended or was killed.
struct RunOutcome {
  int status = 0;          ///< of wait(2)
  bool late = false;       ///< killed at the deadline, or because no data moved for too long
  bool too_much = false;   ///< killed because of its output: too much, or a callable returned false
  bool stopped = false;    ///< killed on request
  bool input_cut = false;  ///< it did not read all of its input
  int code() const { return exit_code(status); }
};

/// Runs a program to its end, within limits. Throws NotStarted, and what the callables throw; the program is then
/// killed.
inline RunOutcome run(const std::vector<std::string>& arguments, RunOptions options) {
  constexpr std::size_t piece_size = std::size_t{256} << 10U;
  const auto now = hypertune::detail::steady_seconds;
  options.spawn.in = options.spawn.out = options.spawn.err = Stream::pipe;
  Subprocess child(arguments, options.spawn);
  for (const auto* end : {&child.in, &child.out, &child.err}) {
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    ::fcntl(end->get(), F_SETPIPE_SZ, 1 << 20);  // fewer switches between the two sides; as far as permitted
  }
  const hypertune::detail::NoSigpipe no_signal;  // if the program does not read its input
  RunOutcome outcome;
  std::atomic<bool> stopped{false};
  std::optional<std::stop_callback<std::function<void()>>> on_stop;  // only as long as the process has its number
  on_stop.emplace(options.stop, std::function<void()>([&] {
                    stopped = true;
                    child.signal(SIGKILL);
                  }));
  const double begin = now();
  double until = begin + options.deadline, moved = begin;
  bool exited = false, killed = false, more_input = true;
  std::string_view piece;
  std::array<std::size_t, 2> sizes{};
  const auto buffer = std::make_unique_for_overwrite<char[]>(piece_size);
  const auto kill = [&](bool& why) {
    why = killed = true;
    child.signal(SIGKILL);
    if (!exited) until = now() + 2;
  };
  const auto read_from = [&](Descriptor& from, const RunOptions::Take& take, std::size_t& size) {
    const ssize_t n = hypertune::detail::read_some(from.get(), buffer.get(), piece_size);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      from = Descriptor();
      return;
    }
    moved = now();
    size += static_cast<std::size_t>(n);
    if (size <= options.max_output && (!take || take({buffer.get(), static_cast<std::size_t>(n)}))) return;
    from = Descriptor();
    kill(outcome.too_much);
  };
  while (!exited || child.out || child.err) {
    if (child.in && piece.empty() && more_input) {
      piece = options.input ? options.input() : std::string_view();
      more_input = !piece.empty();
      if (!more_input && !options.hold_input) child.in = Descriptor();
    }
    const double bound = exited || killed ? until : std::min(until, moved + options.stall);
    const auto ready = child.ready(std::max(0.0, bound - now()), !piece.empty());
    if (!ready) {
      if (now() < bound) continue;
      if (exited || killed) break;
      kill(outcome.late);
      continue;
    }
    if (ready.in) {
      const ssize_t n = ::write(child.in.get(), piece.data(), piece.size());
      if (n > 0) {
        piece.remove_prefix(static_cast<std::size_t>(n));
        moved = now();
      } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        outcome.input_cut = true;
        piece = {};
        more_input = false;
        child.in = Descriptor();
      }
    }
    if (ready.out) read_from(child.out, options.take_out, sizes[0]);
    if (ready.err) read_from(child.err, options.take_err, sizes[1]);
    if (ready.exited) {
      exited = true;
      on_stop.reset();
      child.wait();
      outcome.input_cut = outcome.input_cut || (child.in && !options.hold_input);
      piece = {};
      more_input = false;
      child.in = Descriptor();
      until = now() + options.linger;
    }
  }
  on_stop.reset();
  child.end();
  outcome.stopped = stopped;
  outcome.status = child.wait();
  return outcome;
}

/// How a program ended, and its output.
struct Collected : RunOutcome {
  std::string out, err;
  bool truncated = false;  ///< there was more than is kept
  bool ok() const { return status == 0 && !late && !too_much && !stopped; }
};

/// As run(); output for which there is no callable is collected.
inline Collected collect(const std::vector<std::string>& arguments, RunOptions options = {}) {
  Collected collected;
  const auto into = [&collected, most = options.max_kept](std::string& text) {
    return [&collected, &text, most](std::string_view bytes) {
      const auto room = most - text.size();
      collected.truncated = collected.truncated || bytes.size() > room;
      text += bytes.substr(0, room);
      return true;
    };
  };
  if (!options.take_out) options.take_out = into(collected.out);
  if (!options.take_err) options.take_err = into(collected.err);
  static_cast<RunOutcome&>(collected) = run(arguments, std::move(options));
  return collected;
}

}  // namespace hypertune::inline v0::process
