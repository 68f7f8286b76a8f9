// ChildProcess: an external command in a process group of its own, with its output in pipes.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/process/subprocess.hpp>

#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::local::detail {

using hypertune::detail::Descriptor;

/// Whether this process is a worker of a Guardian. Such a process runs one command at a time, adopts the command's
/// orphans, and dies with its driver, so that commands need no keeper process.
bool& is_worker_process();

/// How many SIGTERMs this worker process has received. When a machine is shut down or a job is ended, every process
/// gets one. A worker ignores it otherwise: its driver, which gets it too, decides about the trial and may let it save
/// first. The command has got it as well.
std::atomic<int>& sigterm_count();
void count_sigterms();

/// What a command's standard output is.
enum class OutputStream : std::uint8_t {
  pipe,
  packets,   ///< a pipe of which each read returns what one write has put in (at most 4096 bytes of it)
  terminal,  ///< a pseudo-terminal, which passes bytes on as they are and controls nothing
};

/// Not thread-safe. In a worker process the command is a direct child, which the kernel kills when the worker's main
/// thread ends. In other processes a keeper process is its parent, and kills it when this process ends.
class ChildProcess {
 public:
  /// Throws NotStarted if the program cannot be run; an Error of kind `io` if there is no terminal to be had.
  explicit ChildProcess(const std::vector<std::string>& arguments,
                        std::map<std::string, std::optional<std::string>> environment = {},
                        OutputStream output = OutputStream::pipe);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills the command, its process group and everything that it started.
  ~ChildProcess();

  void signal(int number) const { process_.signal(number); }

  /// Waits for output or the exit, at most `seconds` (0: does not wait). Adds the output to `out`, a text for each
  /// read(2), and to `err`.
  void pump(double seconds, std::vector<std::string>& out, std::string& err);
  /// The same, with all output as one text.
  void pump(double seconds, std::string& out, std::string& err);

  /// Whether the command, or a process that it started, is stopped (SIGSTOP).
  bool is_stopped() const { return process::any_stopped(process_.pid()); }

  /// The command's process, while it runs; none if it is gone.
  std::vector<pid_t> processes() const;
  /// What the command and all that it waited for have used, once it has exited.
  const rusage& usage() const { return usage_; }

  /// The status of wait(2), once the command has exited.
  const std::optional<int>& status() const { return process_.status(); }

 private:
  // Reads once, or (`all`) until nothing is left, and passes what it has read to `take`.
  template <class Take>
  static void read(Descriptor& pipe, bool all, const Take& take);

  // Kills processes that left the group and outlived the command. A worker adopts such orphans, so they are its
  // children.
  static void sweep();

  // Sets usage_, when the process is about to be waited for.
  void take_usage();

  process::Subprocess process_;
  rusage usage_{};
};

}  // namespace hypertune::inline v0::local::detail
