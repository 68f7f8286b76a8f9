// ChildProcess: definitions.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace hypertune::inline v0::local::detail {

HYPERTUNE_INLINE bool& is_worker_process() {
  static bool worker = false;
  return worker;
}

HYPERTUNE_INLINE std::atomic<int>& sigterm_count() {
  static std::atomic<int> count{0};
  return count;
}

HYPERTUNE_INLINE void count_sigterms() {
  sigterm_count() = 0;  // initialises the static before the handler uses it
  ::signal(SIGTERM, [](int) { sigterm_count().fetch_add(1, std::memory_order_relaxed); });
}

HYPERTUNE_INLINE ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                                            std::map<std::string, std::optional<std::string>> environment)
    : process_(arguments, {.out = process::Stream::pipe,
                           .err = process::Stream::pipe,
                           .environment = std::move(environment),
                           .death_signal = SIGKILL,
                           .keeper = is_worker_process() ? process::Keeper::none : process::Keeper::all,
                           .keep_descriptors = true}) {}

HYPERTUNE_INLINE ChildProcess::~ChildProcess() {
  process_.end();
  if (is_worker_process()) sweep();
}

HYPERTUNE_INLINE void ChildProcess::pump(double seconds, std::string& out, std::string& err) {
  const auto ready = process_.ready(seconds);
  if (ready.exited) {
    process_.signal(SIGKILL);  // kills its group, while the zombie keeps the group's id from being reused
    process_.wait();
  }
  // All output of the command from before its exit is in the pipes; other processes that hold them open do not matter
  // any more.
  if (ready.out || ready.exited) take(process_.out, out, ready.exited);
  if (ready.err || ready.exited) take(process_.err, err, ready.exited);
}

HYPERTUNE_INLINE void ChildProcess::take(Descriptor& pipe, std::string& text, bool all) {
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

HYPERTUNE_INLINE void ChildProcess::sweep() {
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
