// CgroupTree: definitions.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/local/cgroup.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace hypertune::inline v0::local::detail {

std::optional<CgroupPlace> CgroupPlace::find() {
  std::ifstream groups("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) path = line.substr(3);
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream words(line.substr(0, dash));
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    std::string below = path;
    if (root != "/") {  // only a part of the hierarchy is mounted
      if (!below.starts_with(root)) return std::nullopt;
      below.erase(0, root.size());
    }
    if (below.empty() || below.starts_with("/..")) return std::nullopt;
    return CgroupPlace{point, std::filesystem::path(point + below).lexically_normal()};
  }
  return std::nullopt;
}

CgroupTree::CgroupTree(const std::optional<CgroupPlace>& place) : self_(::getpid()) {
  static std::atomic<int> count{0};
  if (!place) {
    why_not_ = "no cgroup (v2) of this process is to be seen";
    return;
  }
  why_not_ = "no cgroup (v2) that this process may divide gives memory limits";
  for (auto at = place->own;; at = at.parent_path()) {
    if (offers(at, at == place->own)) {
      parent_ = at;
      path_ = at / ("hypertune-" + std::to_string(self_) + "-" + std::to_string(count++));
      leaf_ = at / ("hypertune-" + std::to_string(self_) + "-driver");
      why_not_.clear();
      return;
    }
    if (at == place->mount || limits(at) || !at.has_relative_path()) return;
  }
}

bool CgroupTree::prepare() {
  if (prepared_ || !why_not_.empty()) return prepared_;
  remove_stale();
  prepared_ = make();
  if (!prepared_) {
    why_not_ = "the cgroup '" + path_.string() + "' could not be made: " + std::generic_category().message(errno);
    remove();
  }
  return prepared_;
}

bool CgroupTree::enter(std::uint64_t limit) const {
  const auto mine = of(::getpid());
  std::error_code none;
  if (limit == 0) {
    if (!path_.empty() && std::filesystem::exists(mine, none)) write(mine / "memory.max", "max");
    return false;
  }
  if (path_.empty() || !std::filesystem::exists(path_, none)) return false;
  std::filesystem::create_directory(mine, none);
  write(mine / "memory.swap.max", "0");   // otherwise it would slow down by swapping instead
  write(mine / "memory.oom.group", "1");  // a trial is useless without one of its processes
  if (write(mine / "memory.max", std::to_string(limit)) && write(mine / "cgroup.procs", std::to_string(::getpid())))
    return true;
  ::rmdir(mine.c_str());
  return false;
}

bool CgroupTree::holds(pid_t worker) const {
  std::error_code none;
  return prepared_ && std::filesystem::exists(of(worker), none);
}

bool CgroupTree::killed(pid_t worker) const {
  if (!prepared_) return false;
  std::ifstream events(of(worker) / "memory.events");
  std::uint64_t number = 0;
  for (std::string word; events >> word >> number;)
    if ((word == "oom_kill" || word == "oom_group_kill") && number > 0) return true;
  return false;
}

void CgroupTree::drop(pid_t worker) const {
  if (prepared_) ::rmdir(of(worker).c_str());
}

void CgroupTree::remove() const {
  if (path_.empty()) return;
  remove_folder(path_);
  std::error_code none;
  if (!std::filesystem::exists(leaf_, none) || others_in(parent_)) return;
  write(parent_ / "cgroup.subtree_control", "-memory");
  write(parent_ / "cgroup.procs", std::to_string(::getpid()));
  ::rmdir(leaf_.c_str());
}

std::string CgroupTree::text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  return text;
}

bool CgroupTree::has_word(const std::filesystem::path& file, std::string_view wanted) {
  std::ifstream in(file);
  for (std::string word; in >> word;)
    if (word == wanted) return true;
  return false;
}

bool CgroupTree::write(const std::filesystem::path& file, const std::string& text) {
  const auto fd = hypertune::detail::open_at(AT_FDCWD, file.c_str(), O_WRONLY, 0);
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::vector<pid_t> CgroupTree::processes_in(const std::filesystem::path& group) {
  std::ifstream in(group / "cgroup.procs");
  std::vector<pid_t> pids;
  for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
  return pids;
}

bool CgroupTree::mine(pid_t pid) const {
  for (int depth = 0; pid > 0 && depth < 64; ++depth, pid = process::parent_of(pid))
    if (pid == self_) return true;
  return false;
}

bool CgroupTree::offers(const std::filesystem::path& group, bool own) {
  for (const char* file : {"", "cgroup.procs", "cgroup.subtree_control"})
    if (::access((group / file).c_str(), W_OK) != 0) return false;
  if (!has_word(group / "cgroup.controllers", "memory")) return false;
  if (has_word(group / "cgroup.subtree_control", "memory")) return true;
  const std::string type = text_of(group / "cgroup.type");
  if (type.empty()) return true;  // the root cgroup may have processes
  if (type != "domain") return false;
  const auto processes = processes_in(group);
  move_self_ = own && !processes.empty();
  for (const pid_t pid : processes)
    if (!own || !mine(pid)) return move_self_ = false;
  return true;
}

bool CgroupTree::limits(const std::filesystem::path& group) {
  for (const char* file : {"memory.max", "memory.high", "memory.swap.max", "cpu.max"})
    if (const auto text = text_of(group / file); !text.empty() && !text.starts_with("max")) return true;
  return !text_of(group / "cpuset.cpus").empty();
}

bool CgroupTree::make() {
  if (!has_word(parent_ / "cgroup.subtree_control", "memory")) {
    if (move_self_ && ::mkdir(leaf_.c_str(), 0755) != 0 && errno != EEXIST) return false;
    bool enabled = false;
    for (int attempt = 0; attempt < 10 && !enabled; ++attempt) {  // processes may be forked meanwhile
      if (move_self_)
        for (const pid_t pid : processes_in(parent_))
          if (mine(pid)) write(leaf_ / "cgroup.procs", std::to_string(pid));
      enabled = write(parent_ / "cgroup.subtree_control", "+memory");
    }
    if (!enabled) return false;
  }
  return ::mkdir(path_.c_str(), 0755) == 0 && write(path_ / "cgroup.subtree_control", "+memory");
}

void CgroupTree::remove_stale() const {
  std::error_code none;
  for (std::filesystem::directory_iterator entry(parent_, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("hypertune-")) continue;
    const pid_t owner = process::to_pid(std::string_view(name).substr(10, name.find('-', 10) - 10));
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) remove_folder(entry->path());
  }
}

void CgroupTree::remove_folder(const std::filesystem::path& group) {
  std::error_code none;
  std::vector<std::filesystem::path> below;
  for (std::filesystem::directory_iterator entry(group, none), end; !none && entry != end; entry.increment(none))
    if (entry->is_directory(none)) below.push_back(entry->path());
  for (const auto& child : below) ::rmdir(child.c_str());
  ::rmdir(group.c_str());
}

bool CgroupTree::others_in(const std::filesystem::path& group) const {
  std::error_code none;
  for (std::filesystem::directory_iterator entry(group, none), end; !none && entry != end; entry.increment(none))
    if (entry->is_directory(none) && entry->path() != leaf_) return true;
  return false;
}

}  // namespace hypertune::inline v0::local::detail
