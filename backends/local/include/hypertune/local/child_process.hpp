// ChildProcess: a command in a process group of its own, with its output in pipes.
#pragma once

#include <hypertune/process/subprocess.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::local::detail {

using hypertune::detail::Descriptor;

/// Whether this process is a worker of a Guardian: then it runs one command at a time, adopts what that leaves behind,
/// and dies with its driver, so that commands need no keeper.
inline bool& is_worker_process() {
  static bool worker = false;
  return worker;
}

/// How often SIGTERM has come to this worker process. Who ends all processes of a machine or of a job sends it to each
/// one. A worker leaves it to its driver what becomes of the trial, which may save first; a command was told as well.
inline std::atomic<int>& ends_from_outside() {
  static std::atomic<int> count{0};
  return count;
}
inline void leave_ends_to_driver() {
  ends_from_outside() = 0;  // made before the handler needs it
  ::signal(SIGTERM, [](int) { ends_from_outside().fetch_add(1, std::memory_order_relaxed); });
}

/// Used by one thread at a time. In a worker process it is a child of that process, and the kernel ends it with the
/// worker's main thread; elsewhere a keeper stands between, and ends it with this process.
class ChildProcess {
 public:
  /// Throws NotStarted if the program cannot be run.
  explicit ChildProcess(const std::vector<std::string>& arguments,
                        std::map<std::string, std::optional<std::string>> environment = {})
      : process_(arguments, {.out = process::Stream::pipe,
                             .err = process::Stream::pipe,
                             .environment = std::move(environment),
                             .death_signal = SIGKILL,
                             .keeper = is_worker_process() ? process::Keeper::none : process::Keeper::all,
                             .keep_descriptors = true}) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Ends it by force, with all its group and all that it started.
  ~ChildProcess() {
    process_.end();
    if (is_worker_process()) sweep();
  }

  void signal(int number) const { process_.signal(number); }

  /// Waits for output or the exit, at most `seconds` (0: looks only). `out` and `err` take what came.
  void pump(double seconds, std::string& out, std::string& err) {
    const auto ready = process_.ready(seconds);
    if (ready.exited) {
      process_.signal(SIGKILL);  // while the zombie keeps the group's number its own: what it left behind
      process_.wait();
    }
    // What the command wrote before its exit is in the pipes; who else holds them open does not matter any more.
    if (ready.out || ready.exited) take(process_.out, out, ready.exited);
    if (ready.err || ready.exited) take(process_.err, err, ready.exited);
  }

  /// Of wait(2), once it has exited.
  const std::optional<int>& status() const { return process_.status(); }

 private:
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

  // A worker adopts orphans: those that left the group and outlived the command are here.
  static void sweep() {
    for (;;) {
      const auto orphans = process::children_of(::getpid());
      if (orphans.empty()) return;
      for (const pid_t orphan : orphans) {
        ::kill(orphan, SIGKILL);
        if (::waitpid(orphan, nullptr, 0) < 0 && errno == ECHILD) return;
      }
    }
  }

  process::Subprocess process_;
};

}  // namespace hypertune::inline v0::local::detail
