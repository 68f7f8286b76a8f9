// Processes according to /proc: their parents and children, and their memory.
#pragma once

#include <hypertune/detail/parse_number.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::process {

inline pid_t to_pid(std::string_view text) { return detail::parse_number<pid_t>(text).value_or(0); }

/// A field of /proc/<pid>/stat by its number in proc(5), from 3 on; empty if the process is gone.
inline std::string stat_field(pid_t pid, int number) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const auto name_end = line.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos) return {};
  std::string_view rest = std::string_view(line).substr(name_end + 1);
  for (int at = 3; !rest.empty(); ++at) {
    rest.remove_prefix(1);  // the space before it
    const auto end = std::min(rest.find(' '), rest.size());
    if (at == number) return std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return {};
}

/// The parent of a process; 0 if it is gone.
inline pid_t parent_of(pid_t pid) { return to_pid(stat_field(pid, 4)); }

/// When a process started, in clock ticks since the machine started. Together with its number, this identifies the
/// process. 0 if it is gone.
inline std::uint64_t start_of(pid_t pid) {
  return detail::parse_number<std::uint64_t>(stat_field(pid, 22)).value_or(0);
}

/// Whether the process exists and has not ended. A zombie has ended.
inline bool is_alive(pid_t pid) {
  const std::string state = stat_field(pid, 3);
  return !state.empty() && state != "Z" && state != "X";
}

/// The children of a process, of all its threads. Empty if it is gone.
inline std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  bool listed = false;
  for (std::filesystem::directory_iterator task("/proc/" + std::to_string(pid) + "/task", error), none;
       !error && task != none; task.increment(error)) {
    std::ifstream in(task->path() / "children");
    listed = listed || in.is_open();
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  if (listed) return children;
  // A kernel without this list: look at all processes.
  for (std::filesystem::directory_iterator entry("/proc", error), none; !error && entry != none;
       entry.increment(error)) {
    const pid_t other = to_pid(entry->path().filename().string());
    if (other > 0 && parent_of(other) == pid) children.push_back(other);
  }
  return children;
}

/// Bytes of memory that a process holds now; 0 if it is gone.
inline std::uint64_t resident_memory(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t total = 0, resident = 0;
  if (!(in >> total >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Whether `test` holds for a process or one of its descendants. Stops at the first one for which it holds.
template <class Test>
bool any_in_tree(pid_t pid, const Test& test, int depth = 0) {
  if (test(pid)) return true;
  if (depth < 16)
    for (const pid_t child : children_of(pid))
      if (any_in_tree(child, test, depth + 1)) return true;
  return false;
}

/// Bytes of memory that a process and all its descendants hold now.
inline std::uint64_t tree_memory(pid_t pid) {
  std::uint64_t bytes = 0;
  any_in_tree(pid, [&](pid_t each) {
    bytes += resident_memory(each);
    return false;
  });
  return bytes;
}

/// Whether a process or one of its descendants is stopped: by SIGSTOP, or because it needs a terminal that it may not
/// use. A process held by a debugger does not count.
inline bool any_stopped(pid_t pid) {
  return any_in_tree(pid, [](pid_t each) { return stat_field(each, 3) == "T"; });
}

}  // namespace hypertune::inline v0::process
