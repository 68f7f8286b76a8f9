// CgroupTree: memory limits that the kernel keeps, where this program may make cgroups (v2) of its own.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// Where the cgroups (v2) of this machine are, and which of them this process is in.
struct CgroupPlace {
  std::filesystem::path mount;
  std::filesystem::path own;  ///< below mount

  static std::optional<CgroupPlace> find();
};

/// A cgroup for each worker process whose trial has a memory limit, in one of this program's own. That one is made in
/// the nearest cgroup that may be written and gives memory limits to its children, going up only where that leaves no
/// limit behind; where this program is alone in its cgroup (systemd-run, a delegated one), in there: all its processes
/// move to a leaf then, as the kernel wants. Nothing is made before the first prepare().
class CgroupTree {
 public:
  CgroupTree() : CgroupTree(CgroupPlace::find()) {}
  explicit CgroupTree(const std::optional<CgroupPlace>& place);

  /// Empty: it can be made, or has been.
  const std::string& why_not() const { return why_not_; }
  const std::filesystem::path& path() const { return path_; }

  /// Makes it, once. False: there is none.
  bool prepare();

  /// To be called in a worker process: moves it to a cgroup with that limit, or lifts the limit (0). False: it has
  /// none.
  bool enter(std::uint64_t limit) const;

  /// Of a worker, by another process: whether the kernel limits it; whether it ended it for that; how much it may hold.
  bool holds(pid_t worker) const;
  bool killed(pid_t worker) const;
  /// The worker and all that it started are gone.
  void drop(pid_t worker) const;

  /// Takes away what was made, whoever made it; what processes are still in stays. Also for the guardian, whose copy of
  /// this is older.
  void remove() const;

 private:
  std::filesystem::path of(pid_t worker) const { return path_ / std::to_string(worker); }

  static std::string text_of(const std::filesystem::path& file);
  static bool has_word(const std::filesystem::path& file, std::string_view wanted);
  // One write(2), as the kernel takes these files.
  static bool write(const std::filesystem::path& file, const std::string& text);
  static std::vector<pid_t> processes_in(const std::filesystem::path& group);
  bool mine(pid_t pid) const;

  bool offers(const std::filesystem::path& group, bool own);
  static bool limits(const std::filesystem::path& group);

  bool make();

  // Of programs that were killed with their guardian.
  void remove_stale() const;
  static void remove_folder(const std::filesystem::path& group);
  bool others_in(const std::filesystem::path& group) const;

  pid_t self_;
  std::filesystem::path parent_, path_, leaf_;
  bool move_self_ = false, prepared_ = false;
  std::string why_not_;
};

}  // namespace hypertune::inline v0::local::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/cgroup.hpp>
#endif
