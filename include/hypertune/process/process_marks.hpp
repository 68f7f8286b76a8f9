// Process marks: a folder in which processes register their numbers, so that signals can be passed on to them.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/process/process_tree.hpp>

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::process {

/// The name of a process's mark: its number and its start time, so that no later process is taken for it.
inline std::string mark_name(pid_t pid) { return std::to_string(pid) + "." + std::to_string(start_of(pid)); }

/// The mark of this process, for the lifetime of the object. A folder that is missing or cannot be written is not an
/// error: see left().
class ProcessMark {
 public:
  ProcessMark() = default;
  explicit ProcessMark(const std::filesystem::path& folder) : owner_(::getpid()), file_(folder / mark_name(owner_)) {
    left_ = static_cast<bool>(hypertune::detail::open_at(AT_FDCWD, file_.c_str(), O_WRONLY | O_CREAT, 0600));
  }
  ProcessMark(const ProcessMark&) = delete;
  ProcessMark& operator=(const ProcessMark&) = delete;
  ~ProcessMark() {
    if (left_ && owner_ == ::getpid()) ::unlink(file_.c_str());
  }
  bool left() const { return left_; }

 private:
  pid_t owner_ = -1;
  std::filesystem::path file_;
  bool left_ = false;
};

/// A living process, held by a pidfd so that a signal cannot reach another process with the same number.
class MarkedProcess {
 public:
  MarkedProcess(pid_t pid, hypertune::detail::Descriptor handle) : pid_(pid), handle_(std::move(handle)) {}
  pid_t pid() const { return pid_; }
  int exit_event() const { return handle_.get(); }  ///< can be read from when the process has ended
  void signal(int number) const { ::syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0U); }

 private:
  pid_t pid_;
  hypertune::detail::Descriptor handle_;
};

/// The living process with this mark, on this machine and in this pid namespace. Without `error`: there is certainly
/// none.
inline std::optional<MarkedProcess> marked_process(const std::string& mark, std::error_code& error) {
  error = std::make_error_code(std::errc::invalid_argument);
  const std::string_view number = std::string_view(mark).substr(0, mark.find('.'));
  const pid_t pid = to_pid(number);
  if (pid <= 1 || number.size() == mark.size()) return std::nullopt;
  error.clear();
  hypertune::detail::Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // Checked after the pidfd was opened: the number cannot be reused any more.
  if (handle && is_alive(pid) && mark_name(pid) == mark) return MarkedProcess(pid, std::move(handle));
  if (!handle && errno != ESRCH) error = {errno, std::generic_category()};
  return std::nullopt;
}

/// The living processes that have a mark in the folder. All other marks are removed.
inline std::vector<MarkedProcess> marked_processes(const std::filesystem::path& folder) {
  std::vector<MarkedProcess> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), none; !error && entry != none;
       entry.increment(error)) {
    std::error_code unknown;
    if (auto process = marked_process(entry->path().filename().string(), unknown))
      found.push_back(std::move(*process));
    else if (!unknown)
      ::unlink(entry->path().c_str());
  }
  return found;
}

}  // namespace hypertune::inline v0::process
