// ChildProcess: a command in a process group of its own, with its output in pipes.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/process/subprocess.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::local::detail {

using hypertune::detail::Descriptor;

/// Whether this process is a worker of a Guardian: then it runs one command at a time, adopts what that leaves behind,
/// and dies with its driver, so that commands need no keeper.
bool& is_worker_process();

/// How often SIGTERM has come to this worker process. Who ends all processes of a machine or of a job sends it to each
/// one. A worker leaves it to its driver what becomes of the trial, which may save first; a command was told as well.
std::atomic<int>& ends_from_outside();
void leave_ends_to_driver();

/// Used by one thread at a time. In a worker process it is a child of that process, and the kernel ends it with the
/// worker's main thread; elsewhere a keeper stands between, and ends it with this process.
class ChildProcess {
 public:
  /// Throws NotStarted if the program cannot be run.
  explicit ChildProcess(const std::vector<std::string>& arguments,
                        std::map<std::string, std::optional<std::string>> environment = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Ends it by force, with all its group and all that it started.
  ~ChildProcess();

  void signal(int number) const { process_.signal(number); }

  /// Waits for output or the exit, at most `seconds` (0: looks only). `out` and `err` take what came.
  void pump(double seconds, std::string& out, std::string& err);

  /// Whether it, or what it started, is stopped (SIGSTOP).
  bool is_stopped() const { return process::any_stopped(process_.pid()); }

  /// Of wait(2), once it has exited.
  const std::optional<int>& status() const { return process_.status(); }

 private:
  // One read, or (`all`) everything that is there.
  static void take(Descriptor& pipe, std::string& text, bool all);

  // A worker adopts orphans: those that left the group and outlived the command are here.
  static void sweep();

  process::Subprocess process_;
};

}  // namespace hypertune::inline v0::local::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/child_process.hpp>
#endif
