// CgroupTree: memory limits enforced by the kernel, if this program may create cgroups (v2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// The mount point of the cgroups (v2) of this machine, and the cgroup of this process.
struct CgroupPlace {
  std::filesystem::path mount;
  std::filesystem::path own;  ///< below mount

  static std::optional<CgroupPlace> find();
};

/// Creates a cgroup for each worker process whose trial has a memory limit, inside a cgroup for this program. The
/// latter is created in the nearest cgroup, from this process's own upwards, that is writable and can give its children
/// memory limits; the search does not go above a cgroup with limits. If this program is alone in its cgroup
/// (systemd-run, a delegated one), that one is used: its processes are then moved to a leaf, as the kernel requires.
/// Nothing is created before the first prepare().
class CgroupTree {
 public:
  CgroupTree() : CgroupTree(CgroupPlace::find()) {}
  explicit CgroupTree(const std::optional<CgroupPlace>& place);

  /// Why there are no cgroups; empty if they can be, or have been, created.
  const std::string& why_not() const { return why_not_; }
  const std::filesystem::path& path() const { return path_; }

  /// Creates the program's cgroup, once. False if that is not possible.
  bool prepare();

  /// To be called in a worker process: moves it to a cgroup with that limit, or lifts the limit (0). Returns whether it
  /// has a limit.
  bool enter(std::uint64_t limit) const;

  /// To be called by another process: whether the worker has a cgroup; whether the kernel has killed it for its limit.
  bool holds(pid_t worker) const;
  bool killed(pid_t worker) const;
  /// Removes the cgroup of a worker that is gone with everything that it started.
  void drop(pid_t worker) const;

  /// Removes the cgroups, even if another process created them, except those with processes in them. Also called by the
  /// guardian, whose copy of this object is older.
  void remove() const;

 private:
  std::filesystem::path of(pid_t worker) const { return path_ / std::to_string(worker); }

  static std::string text_of(const std::filesystem::path& file);
  static bool has_word(const std::filesystem::path& file, std::string_view wanted);
  // By a single write(2), as the kernel requires for these files.
  static bool write(const std::filesystem::path& file, const std::string& text);
  static std::vector<pid_t> processes_in(const std::filesystem::path& group);
  bool mine(pid_t pid) const;

  bool offers(const std::filesystem::path& group, bool own);
  static bool limits(const std::filesystem::path& group);

  bool make();

  // Removes cgroups of programs that were killed together with their guardian.
  void remove_stale() const;
  static void remove_folder(const std::filesystem::path& group);
  bool others_in(const std::filesystem::path& group) const;

  pid_t self_;
  std::filesystem::path parent_, path_, leaf_;
  bool move_self_ = false, prepared_ = false;
  std::string why_not_;
};

}  // namespace hypertune::inline v0::local::detail
