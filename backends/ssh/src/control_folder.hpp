// ControlFolder: the folder of the connections' control sockets.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

namespace hypertune::inline v0::ssh::detail {

/// A private folder of this process, with a path short enough for sockets in it. It is removed with the last
/// connection. The folder of a killed process is removed when another process makes its own.
class ControlFolder {
 public:
  static std::shared_ptr<ControlFolder> get() {
    static std::mutex mutex;
    static std::weak_ptr<ControlFolder> shared;
    const std::lock_guard hold(mutex);
    auto folder = shared.lock();
    if (!folder || folder->owner_ != ::getpid()) {
      folder = std::make_shared<ControlFolder>();
      shared = folder;
    }
    return folder;
  }

  ControlFolder() : owner_(::getpid()) {
    const auto base = choose_base();
    prune(base);
    for (int attempt = 0; attempt < 10; ++attempt) {
      std::string name = base + "/hypertune-ssh-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr)
        fail(Errc::io, "cannot make a folder for ssh's control sockets in '{}': {}; set TMPDIR to one that can be used",
             base, std::generic_category().message(errno));
      auto lock = hypertune::detail::open_at(AT_FDCWD, (name + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
      struct stat info{};
      // Another process may have pruned the folder before it was locked.
      if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && ::stat((name + "/lock").c_str(), &info) == 0) {
        path_ = name;
        lock_ = std::move(lock);
        return;
      }
    }
    fail(Errc::io, "cannot make a folder for ssh's control sockets in '{}'", base);
  }
  ControlFolder(const ControlFolder&) = delete;
  ControlFolder& operator=(const ControlFolder&) = delete;
  ~ControlFolder() {
    if (owner_ != ::getpid()) return;  // a forked child does not own the folder
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string next_socket() { return fmt::format("{}/{}", path_, next_++); }

 private:
  // A socket's path has at most 107 characters, and ssh appends up to 18.
  static std::string choose_base() {
    for (const char* variable : {"TMPDIR", "XDG_RUNTIME_DIR"}) {
      const char* value = std::getenv(variable);
      if (value != nullptr && *value == '/' && std::string_view(value).size() <= 60 &&
          ::access(value, W_OK | X_OK) == 0)
        return value;
    }
    return "/tmp";
  }

  static void prune(const std::string& base) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(base, error), none; !error && it != none; it.increment(error)) {
      const auto path = it->path();
      struct stat info{};
      if (!path.filename().string().starts_with("hypertune-ssh-") || ::lstat(path.c_str(), &info) != 0 ||
          !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
        continue;
      const auto lock = hypertune::detail::open_at(AT_FDCWD, (path / "lock").c_str(), O_RDWR | O_NOFOLLOW);
      if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  }

  pid_t owner_;
  std::string path_;
  hypertune::detail::Descriptor lock_;
  std::atomic<int> next_{1};
};

}  // namespace hypertune::inline v0::ssh::detail
