// Definitions for subprocess.hpp.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/cluster/linkage.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

extern char** environ;

namespace hypertune::cluster {
namespace detail {

using hypertune::detail::Descriptor;
using SteadyClock = std::chrono::steady_clock;

inline std::pair<Descriptor, Descriptor> program_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(Errc::io, "cannot make a pipe: {}", std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

inline double seconds_since(SteadyClock::time_point then) {
  return std::chrono::duration<double>(SteadyClock::now() - then).count();
}

inline struct flock lock_of(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Names without the program's own folder, for messages.
inline std::string program_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

struct Spawned {
  pid_t pid = -1;
  Descriptor in, out, err;
};

// The lock is a record lock of the child itself: it survives exec, falls with the process, and what that process starts
// and leaves running does not have it. The child dies with its parent up to the moment when the lock is taken.
inline Spawned spawn(const ProgramCall& call) {
  if (call.arguments.empty()) fail(Errc::usage, "no program to run");
  auto [in_read, in_write] = program_pipe();
  auto [out_read, out_write] = program_pipe();
  auto [err_read, err_write] = program_pipe();
  auto [failed_read, failed_write] = program_pipe();
  Descriptor input, output, lock;
  if (!call.input_file.empty()) {
    input = hypertune::detail::open_at(AT_FDCWD, call.input_file.c_str(), O_RDONLY);
    if (!input) fail(Errc::io, "cannot read '{}': {}", call.input_file.string(), std::strerror(errno));
  }
  if (!call.output_file.empty()) {
    output = hypertune::detail::open_at(AT_FDCWD, call.output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!output) fail(Errc::io, "cannot write '{}': {}", call.output_file.string(), std::strerror(errno));
  }
  std::vector<char*> argv;
  for (const auto& argument : call.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!call.environment.contains(std::string(text.substr(0, text.find('='))))) variables.emplace_back(text);
  }
  for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
  std::vector<char*> env;
  for (auto& variable : variables) env.push_back(variable.data());
  env.push_back(nullptr);
  const std::string lock_path = call.lock.string();
  const pid_t parent = ::getpid();
  Spawned child;
  child.pid = ::fork();
  if (child.pid < 0) fail(Errc::io, "cannot fork for '{}': {}", call.arguments.front(), std::strerror(errno));
  if (child.pid == 0) {  // only what is safe after a fork
    ::setpgid(0, 0);
    int error = 0;
    if (!lock_path.empty()) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      if (::getppid() != parent) ::_exit(127);
      const int fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT, 0600);  // stays open over exec
      const int high = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD, 200);
      if (high >= 0) ::close(fd);
      struct flock shared = lock_of(F_RDLCK);
      if (high < 0 || ::fcntl(high, F_SETLK, &shared) != 0) error = errno;
      ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    }
    if (error == 0) {
      for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::dup2(input ? input.get() : in_read.get(), STDIN_FILENO);
      ::dup2(output ? output.get() : out_write.get(), STDOUT_FILENO);
      ::dup2(err_write.get(), STDERR_FILENO);
      ::execvpe(argv[0], argv.data(), env.data());
      error = errno;
    }
    static_cast<void>(!::write(failed_write.get(), &error, sizeof error));
    ::_exit(127);
  }
  ::setpgid(child.pid, child.pid);
  failed_write = {};
  int error = 0;
  ssize_t got = 0;
  do got = ::read(failed_read.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    ::waitpid(child.pid, nullptr, 0);
    fail(Errc::usage, "cannot run '{}': {}", call.arguments.front(), std::strerror(error));
  }
  child.in = std::move(in_write);
  child.out = std::move(out_read);
  child.err = std::move(err_read);
  if (input) child.in = {};
  return child;
}

// Whatever leaves this scope: no child stays behind.
class Reaper {
 public:
  explicit Reaper(pid_t pid) : pid_(pid) {}
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() {
    if (!done_) {
      kill();
      int status = 0;
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    }
  }
  void kill() const { ::kill(-pid_, SIGKILL); }
  bool ended(int& status) {
    if (!done_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) done_ = true;
    status = status_;
    return done_;
  }

 private:
  pid_t pid_;
  int status_ = 0;
  bool done_ = false;
};

}  // namespace detail

HYPERTUNE_CLUSTER_INLINE ProgramResult run_program(const ProgramCall& call) {
  auto child = detail::spawn(call);
  detail::Reaper reaper(child.pid);
  ProgramResult result;
  const auto begin = detail::SteadyClock::now();
  std::string_view rest = call.input;
  ::fcntl(child.in.get(), F_SETFL, O_NONBLOCK);
  if (rest.empty() && !call.hold_input) child.in = {};
  std::array<char, 65536> buffer{};
  int status = 0;
  bool exited = false;
  detail::SteadyClock::time_point exit_time;
  const hypertune::detail::NoSigpipe no_signal;  // of a program that reads none of its input
  const auto drain = [&](detail::Descriptor& from, std::string& into) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      from = {};
      return;
    }
    const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    const auto& tell = &into == &result.errors && call.on_errors ? call.on_errors : call.on_output;
    if (tell) tell(text);
    const auto room = call.max_output - std::min(call.max_output, into.size());
    result.truncated = result.truncated || text.size() > room;
    into.append(text.substr(0, room));
  };
  while (child.out || child.err || !exited) {
    std::array<pollfd, 3> polled{};
    polled[0] = {child.out.get(), POLLIN, 0};
    polled[1] = {child.err.get(), POLLIN, 0};
    polled[2] = {rest.empty() ? -1 : child.in.get(), POLLOUT, 0};
    ::poll(polled.data(), polled.size(), exited ? 20 : 50);
    if (child.out && polled[0].revents != 0) drain(child.out, result.output);
    if (child.err && polled[1].revents != 0) drain(child.err, result.errors);
    if (child.in && polled[2].revents != 0) {
      const ssize_t sent = ::write(child.in.get(), rest.data(), rest.size());
      if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
      if ((rest.empty() && !call.hold_input) || (sent < 0 && errno != EINTR && errno != EAGAIN)) child.in = {};
    }
    if (!exited && reaper.ended(status)) {
      exited = true;
      exit_time = detail::SteadyClock::now();
    }
    // Something that it left running may hold its pipes for ever.
    if (exited && polled[0].revents == 0 && polled[1].revents == 0 && detail::seconds_since(exit_time) > 0.2) break;
    if (!exited && !result.timed_out && !result.cancelled) {
      result.timed_out = detail::seconds_since(begin) > call.timeout;
      result.cancelled = call.cancelled && call.cancelled();
      if (result.timed_out || result.cancelled) reaper.kill();
    }
  }
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

HYPERTUNE_CLUSTER_INLINE std::string ProgramResult::why() const {
  std::string text = timed_out    ? "took too long and was ended"
                     : cancelled  ? "was interrupted"
                     : code > 128 ? fmt::format("was killed by signal {}", code - 128)
                                  : fmt::format("ended with exit code {}", code);
  std::string_view said = errors.find_first_not_of(" \r\n\t") != std::string::npos ? errors : output;
  while (!said.empty() && std::strchr(" \r\n\t", said.back()) != nullptr) said.remove_suffix(1);
  std::string last;
  for (int line = 0; line < 3 && !said.empty(); ++line) {
    const auto at = said.rfind('\n');
    const auto text_line = said.substr(at == std::string_view::npos ? 0 : at + 1);
    if (!text_line.empty()) last = std::string(text_line.substr(0, 300)) + (last.empty() ? "" : " | ") + last;
    said = at == std::string_view::npos ? std::string_view() : said.substr(0, at);
    while (!said.empty() && std::strchr("\r\n", said.back()) != nullptr) said.remove_suffix(1);
  }
  std::erase_if(last, [](unsigned char c) { return c < 0x20; });
  return last.empty() ? text : text + ": " + last;
}

HYPERTUNE_CLUSTER_INLINE int lock_holder(const std::filesystem::path& lock) {
  const auto fd = hypertune::detail::open_at(AT_FDCWD, lock.c_str(), O_RDWR);
  if (!fd) return 0;
  struct flock wanted = detail::lock_of(F_WRLCK);
  if (::fcntl(fd.get(), F_GETLK, &wanted) != 0 || wanted.l_type == F_UNLCK) return 0;
  return std::max<int>(wanted.l_pid, 1);
}

HYPERTUNE_CLUSTER_INLINE void wait_for_calls(const std::filesystem::path& lock, double seconds) {
  const auto begin = detail::SteadyClock::now();
  for (;;) {
    const int pid = lock_holder(lock);
    if (pid == 0) return;
    if (detail::seconds_since(begin) > seconds)
      fail(Errc::busy,
           "a provider's program that was begun earlier (process {}) still runs: wait for it, or end it and repeat",
           pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // record locks cannot be waited for with a bound
  }
}

HYPERTUNE_CLUSTER_INLINE std::string shell_quote(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || std::strchr("_-./=:@%+,", c) != nullptr;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace hypertune::cluster
