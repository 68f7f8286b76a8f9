// Part of hypertune::k8s: a command in a pod that uses this process's own streams.
#include "exec_task.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

namespace {

using detail::Descriptor;
using detail::ExecTask;

/// Puts a terminal into raw mode: its keys have no special meaning here.
class RawTerminal {
 public:
  explicit RawTerminal(int terminal) : terminal_(terminal) {
    if (::tcgetattr(terminal_, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    changed_ = ::tcsetattr(terminal_, TCSADRAIN, &raw) == 0;
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (changed_) ::tcsetattr(terminal_, TCSADRAIN, &before_);
  }

 private:
  int terminal_;
  termios before_{};
  bool changed_ = false;
};

/// Delivers SIGWINCH to the thread that created it, and only while that thread waits in ppoll(2) with open().
class SizeSignal {
 public:
  SizeSignal() {
    struct sigaction heard{};
    heard.sa_handler = [](int) {};
    ::sigaction(SIGWINCH, &heard, &action_);
    sigset_t changes;
    sigemptyset(&changes);
    sigaddset(&changes, SIGWINCH);
    ::pthread_sigmask(SIG_BLOCK, &changes, &before_);
    open_ = before_;
    sigdelset(&open_, SIGWINCH);
  }
  SizeSignal(const SizeSignal&) = delete;
  SizeSignal& operator=(const SizeSignal&) = delete;
  ~SizeSignal() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::sigaction(SIGWINCH, &action_, nullptr);
  }
  const sigset_t* open() const { return &open_; }

 private:
  struct sigaction action_{};
  sigset_t before_{}, open_{};
};

bool write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), bytes.size());
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno == EAGAIN) {  // another process has made the terminal non-blocking
      pollfd ready{.fd = to, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, 1000);
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

void tell_size(ExecTask& task, int terminal, winsize& told) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
  if (size.ws_col == told.ws_col && size.ws_row == told.ws_row) return;
  told = size;
  task.resize(size.ws_col, size.ws_row);
}

/// Copies data between the task's sockets and this process's streams, until both outputs of the command have ended.
void pump(ExecTask& task, const Foreground& streams, const sigset_t* signals) {
  constexpr std::size_t size = std::size_t{64} << 10U;
  const auto memory = std::make_unique_for_overwrite<char[]>(size),
             typed = std::make_unique_for_overwrite<char[]>(size);
  std::string_view piece;
  winsize told{};
  const auto forward = [&](Descriptor& from, int to) {
    const ssize_t n = ::recv(from.get(), memory.get(), size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // If nobody reads the output any more (a closed pipe), the command sees the same.
    if (n <= 0 || !write_all(to, {memory.get(), static_cast<std::size_t>(n)})) from = Descriptor();
  };
  while (task.from || task.err) {
    if (streams.terminal) tell_size(task, streams.out, told);
    std::array<pollfd, 4> polled{
        pollfd{.fd = task.to && piece.empty() ? streams.in : -1, .events = POLLIN, .revents = 0},
        pollfd{.fd = piece.empty() ? -1 : task.to.get(), .events = POLLOUT, .revents = 0},
        pollfd{.fd = task.from.get(), .events = POLLIN, .revents = 0},
        pollfd{.fd = task.err.get(), .events = POLLIN, .revents = 0}};
    if (::ppoll(polled.data(), polled.size(), nullptr, signals) <= 0) continue;
    if (polled[0].revents != 0) {
      const ssize_t n = ::read(streams.in, typed.get(), size);
      if (n > 0) piece = {typed.get(), static_cast<std::size_t>(n)};
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) task.to = Descriptor();
    }
    if (polled[1].revents != 0) {
      const ssize_t n = ::send(task.to.get(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) piece.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR) {
        piece = {};
        task.to = Descriptor();
      }
    }
    if (polled[2].revents != 0) forward(task.from, streams.out);
    if (polled[3].revents != 0) forward(task.err, streams.err);
  }
}

}  // namespace

int Client::run_foreground(const PodCommand& what, const Foreground& streams, std::stop_token stop) {
  const auto task = std::make_shared<ExecTask>(
      state_, what,
      ExecTask::Wanted{
          .in = true, .must_end_input = !streams.terminal, .explain = false, .terminal = streams.terminal});
  task->open(streams.deadline, stop);
  task->start();
  {
    const SizeSignal changes;
    std::optional<RawTerminal> raw;
    if (streams.terminal) raw.emplace(streams.in);
    const std::stop_callback on_stop(stop, [&] { task->cancel(); });
    pump(*task, streams, changes.open());
  }
  task->end(5);
  const std::string doing = fmt::format("exec in {}", what.pod);
  if (stop.stop_requested())
    throw ApiError(0, "Stopped", fmt::format("stopped before the command had ended ({})", doing));
  const auto& how = task->how();
  if (!how.known) throw ApiError(0, "", fmt::format("the connection to the pod is lost: {} ({})", how.message, doing));
  if (!how.exited) throw ApiError(how.status, how.reason, fmt::format("{} ({})", how.message, doing));
  return how.code;
}

}  // namespace hypertune::inline v0::k8s
