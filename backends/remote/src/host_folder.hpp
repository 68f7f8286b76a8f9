// HostFolder: an experiment's folder on a host, and the lock that one incarnation of its agent holds.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>
#include <hypertune/process/process_marks.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

using hypertune::detail::Descriptor;

inline std::filesystem::path default_agent_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::filesystem::path(cache) / "hypertune" / "agent";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".cache" / "hypertune" / "agent";
  return std::filesystem::temp_directory_path() / fmt::format("hypertune-agent-{}", ::getuid());
}

/// Converts any name to a valid component of a path.
inline std::string folder_name(std::string_view name) {
  std::string safe;
  for (const char c : name.substr(0, 120)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (plain || (c == '.' && !safe.empty()))
      safe += c;
    else
      safe += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return safe.empty() ? "%" : safe;
}

/// Makes a folder and its missing parents, accessible only to this user, independent of the umask.
inline std::error_code make_private_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  if (path.has_relative_path() && path.has_parent_path() && path.parent_path() != path)
    if (const auto above = make_private_folder(path.parent_path())) return above;
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  const int why = errno;
  if (why == EEXIST && std::filesystem::is_directory(path, error)) return {};  // another process has just made it
  return {why, std::generic_category()};
}

inline std::string machine_name() {
  utsname system{};
  ::uname(&system);
  return system.nodename;
}

/// Equal for processes among which a process number means the same: on one machine, since it was started, in one pid
/// namespace. One word.
inline std::string number_space() {
  std::string boot = hypertune::detail::read_file("/proc/sys/kernel/random/boot_id").value_or("");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  if (boot.empty()) boot = machine_name();
  char space[64] = {};
  static_cast<void>(!::readlink("/proc/self/ns/pid", space, sizeof space - 1));
  return fmt::format("{}/{}", boot, space);
}

/// The process that holds a folder, as it has written itself into the lock.
struct FolderHolder {
  std::string mark;  ///< process::mark_name()
  std::uint64_t incarnation = 0;
  std::string space;    ///< number_space()
  std::string machine;  ///< its name

  static FolderHolder this_process(std::uint64_t incarnation) {
    return {process::mark_name(::getpid()), incarnation, number_space(), machine_name()};
  }
  /// nullopt if the text is being written.
  static std::optional<FolderHolder> of(const std::string& text) {
    FolderHolder holder;
    std::istringstream in(text);
    if (!(in >> holder.mark >> holder.incarnation)) return std::nullopt;
    in >> holder.space >> holder.machine;
    return holder;
  }
  std::string text() const { return fmt::format("{} {} {} {}\n", mark, incarnation, space, machine); }

  /// Its number counts only among processes of one number space; a folder may be on a disk that machines share.
  bool is_on_this_machine() const { return space == number_space(); }
  std::string pid() const { return mark.substr(0, mark.find('.')); }

  /// Kills the process if it lives on this machine and is not this one. Not one that has got its number since.
  void kill() const {
    if (!is_on_this_machine() || mark == process::mark_name(::getpid())) return;
    std::error_code error;
    if (const auto process = process::marked_process(mark, error))
      process->signal(SIGKILL);
    else if (error && process::mark_name(process::to_pid(pid())) == mark)  // a kernel without pidfds
      ::kill(process::to_pid(pid()), SIGKILL);
  }
};

/// The lock is on an open file description that all processes forked by the holder share. It is free only when the
/// agent, its guardian and all their workers have ended. The holder may remove the folder; a waiting process then makes
/// a new one.
class HostFolder {
 public:
  /// Makes the folder. Error of kind `io` if that fails.
  HostFolder(const std::filesystem::path& base, std::string_view experiment, std::string_view host)
      : experiment_(base / folder_name(experiment)), path_(experiment_ / folder_name(host)) {
    make();
  }

  const std::filesystem::path& path() const { return path_; }

  /// Takes the lock. Returns false if an earlier incarnation still has it; its agent is then killed if it is on this
  /// machine. Error of kind `busy` if a later incarnation has it: then this one is stale.
  bool try_lock(std::uint64_t incarnation) {
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!is_there()) return make(), false;
      const std::string text = FolderHolder::this_process(incarnation).text();
      if (::ftruncate(lock_.get(), 0) != 0 ||
          ::pwrite(lock_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        hypertune::detail::fail_io(errno, "write", path_ / "lock");
      return true;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) hypertune::detail::fail_io(errno, "lock", path_ / "lock");
    char text[512] = {};
    static_cast<void>(!::pread(lock_.get(), text, sizeof text - 1, 0));
    holder_ = FolderHolder::of(text);
    if (!holder_) return false;
    if (holder_->incarnation > incarnation)
      fail(Errc::busy, "a later connection to this host has taken over (process {})", holder_->pid());
    holder_->kill();  // its guardian ends the rest
    return false;
  }
  /// Why the lock is not free, after try_lock() has returned false for long.
  std::string why_locked() const {
    if (!holder_ || holder_->is_on_this_machine()) return "processes of an earlier connection to this host do not end";
    return fmt::format(
        "an earlier connection's agent still runs on {} (process {}) and holds the folder '{}', which this machine "
        "shares: end it there, or have XDG_CACHE_HOME name a folder of each machine's own",
        holder_->machine.empty() ? "another machine" : fmt::format("machine '{}'", holder_->machine), holder_->pid(),
        path_.string());
  }

  /// Deletes the folder. Must be called by the lock's holder. Files of a later holder are not touched.
  void remove() {
    std::error_code error;
    const auto aside = experiment_ / fmt::format("{}{}-{}", removed_prefix, ::getpid(), path_.filename().string());
    std::filesystem::rename(path_, aside, error);
    if (error) return;
    // Also folders left by processes that were killed while removing them.
    std::vector<std::filesystem::path> all;
    for (std::filesystem::directory_iterator each(experiment_, error), end; !error && each != end;
         each.increment(error))
      if (each->path().filename().string().starts_with(removed_prefix)) all.push_back(each->path());
    for (const auto& folder : all) hypertune::detail::remove_tree(folder);
    std::filesystem::remove(experiment_, error);  // unless another host shares it
  }

 private:
  static constexpr std::string_view removed_prefix = ".removed-";  // folder_name() never begins like this

  void make() {
    const auto name = path_ / "lock";
    // A process that removes an experiment's last folder may remove its parents at the same time.
    constexpr int attempts = 100;
    for (int i = 0; i < attempts; ++i) {
      const auto error = make_private_folder(path_);
      if (error && error != std::errc::no_such_file_or_directory)
        fail(Errc::io,
             "cannot make the folder '{}': {} (agents keep checkpoints there; XDG_CACHE_HOME can name another place)",
             path_.string(), error.message());
      lock_ = hypertune::detail::open_at(AT_FDCWD, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
      if (lock_ || errno != ENOENT) break;
    }
    if (!lock_) hypertune::detail::fail_io(errno, "open", name);
  }
  // Whether the open file is still the folder's lock file.
  bool is_there() const {
    struct stat open{}, there{};
    return ::fstat(lock_.get(), &open) == 0 && ::stat((path_ / "lock").c_str(), &there) == 0 &&
           open.st_ino == there.st_ino && open.st_dev == there.st_dev;
  }

  std::filesystem::path experiment_, path_;
  Descriptor lock_;
  std::optional<FolderHolder> holder_;  // another one, when the lock was tried last
};

}  // namespace hypertune::inline v0::remote::detail
