// ChildProcess: definitions.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

bool& is_worker_process() {
  static bool worker = false;
  return worker;
}

std::atomic<int>& sigterm_count() {
  static std::atomic<int> count{0};
  return count;
}

void count_sigterms() {
  sigterm_count() = 0;  // initialises the static before the handler uses it
  ::signal(SIGTERM, [](int) { sigterm_count().fetch_add(1, std::memory_order_relaxed); });
}

/// Both ends of what a command prints to.
struct OutputEnds {
  Descriptor ours, theirs;
};

// A terminal is no more than a kind of pipe here. It controls no session, so that Ctrl-C and SIGHUP reach the command as
// without it; and it translates nothing.
inline OutputEnds make_terminal() {
  const auto refuse = [](const char* what) {
    fail(Errc::io, "'trial.output: line' needs a pseudo-terminal, but {} failed: {}", what,
         std::generic_category().message(errno));
  };
  OutputEnds ends{Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), {}};
  if (!ends.ours) refuse("posix_openpt");
  if (::grantpt(ends.ours.get()) != 0 || ::unlockpt(ends.ours.get()) != 0) refuse("unlockpt");
  std::array<char, 128> name{};
  if (::ptsname_r(ends.ours.get(), name.data(), name.size()) != 0) refuse("ptsname_r");
  ends.theirs = hypertune::detail::open_at(AT_FDCWD, name.data(), O_RDWR | O_NOCTTY);
  if (!ends.theirs) refuse("opening it");
  termios settings{};
  ::tcgetattr(ends.theirs.get(), &settings);
  ::cfmakeraw(&settings);
  ::tcsetattr(ends.theirs.get(), TCSANOW, &settings);
  // Wide, because programs cut or wrap lines at its width.
  const winsize size{.ws_row = 50, .ws_col = 240, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(ends.theirs.get(), TIOCSWINSZ, &size);
  return ends;
}

inline OutputEnds make_packet_pipe() {
  OutputEnds ends;
  std::tie(ends.ours, ends.theirs) = hypertune::detail::make_pipe();
  ::fcntl(ends.theirs.get(), F_SETFL, O_DIRECT);
  ::fcntl(ends.theirs.get(), F_SETPIPE_SZ, 1 << 20);  // each write takes a page; as far as permitted
  return ends;
}

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           std::map<std::string, std::optional<std::string>> environment, OutputStream output) {
  OutputEnds ends;
  if (output == OutputStream::terminal) ends = make_terminal();
  if (output == OutputStream::packets) ends = make_packet_pipe();
  process_ =
      process::Subprocess(arguments, {.out = ends.theirs ? ends.theirs.get() : process::Stream::pipe,
                                      .err = process::Stream::pipe,
                                      .environment = std::move(environment),
                                      .death_signal = SIGKILL,
                                      .keeper = is_worker_process() ? process::Keeper::none : process::Keeper::all,
                                      .keep_descriptors = true});
  if (ends.ours) process_.out = std::move(ends.ours);
}

ChildProcess::~ChildProcess() {
  process_.end();
  if (is_worker_process()) sweep();
}

void ChildProcess::pump(double seconds, std::vector<std::string>& out, std::string& err) {
  const auto ready = process_.ready(seconds);
  if (ready.exited) {
    process_.signal(SIGKILL);  // kills its group, while the zombie keeps the group's id from being reused
    take_usage();
    process_.wait();
  }
  // All output of the command from before its exit is in the pipes; other processes that hold them open do not matter
  // any more.
  if (ready.out || ready.exited)
    read(process_.out, ready.exited, [&](std::string_view piece) { out.emplace_back(piece); });
  if (ready.err || ready.exited) read(process_.err, ready.exited, [&](std::string_view piece) { err.append(piece); });
}

void ChildProcess::pump(double seconds, std::string& out, std::string& err) {
  std::vector<std::string> pieces;
  pump(seconds, pieces, err);
  for (const auto& piece : pieces) out += piece;
}

template <class Take>
void ChildProcess::read(Descriptor& pipe, bool all, const Take& take) {
  if (!pipe) return;
  std::array<char, 65536> buffer;
  if (all) ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  do {
    const ssize_t n = hypertune::detail::read_some(pipe.get(), buffer.data(), buffer.size());
    if (n <= 0) {  // of a terminal, EIO: nobody has it open any more
      pipe = Descriptor();
      return;
    }
    take(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
  } while (all);
}

std::vector<pid_t> ChildProcess::processes() const {
  if (process_.pid() <= 0 || process_.status()) return {};
  if (is_worker_process()) return {process_.pid()};
  return process::children_of(process_.pid());  // of the keeper
}

void ChildProcess::take_usage() {
  // As wait4(2), but the process can still be waited for.
  siginfo_t info{};
  while (::syscall(SYS_waitid, P_PID, process_.pid(), &info, WEXITED | WNOWAIT, &usage_) < 0 && errno == EINTR) {}
}

void ChildProcess::sweep() {
  for (;;) {
    const auto orphans = process::children_of(::getpid());
    if (orphans.empty()) return;
    for (const pid_t orphan : orphans) {
      ::kill(orphan, SIGKILL);
      if (::waitpid(orphan, nullptr, 0) < 0 && errno == ECHILD) return;
    }
  }
}

}  // namespace hypertune::inline v0::local::detail
