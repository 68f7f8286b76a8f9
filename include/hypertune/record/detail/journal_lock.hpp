// One driver per experiment: a lock that the kernel releases when the process ends, however it ends.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0 {

/// The process that drives an experiment.
struct DriverInfo {
  std::int64_t pid = 0;
  std::string host;
};

namespace detail {

/// A file descriptor that closes itself.
class LockFile {
 public:
  LockFile(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LockFile& operator=(LockFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~LockFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

  /// Reads "PID HOST", as far as it is there.
  DriverInfo read() const {
    std::array<char, 300> buffer{};
    const auto size = ::pread(fd_, buffer.data(), buffer.size() - 1, 0);
    DriverInfo info;
    if (size <= 0 || std::memchr(buffer.data(), '\n', static_cast<std::size_t>(size)) == nullptr) return info;
    char* rest = nullptr;
    info.pid = std::strtoll(buffer.data(), &rest, 10);
    // A line of note_exit_reason() may follow.
    info.host = std::string(rest).substr(0, std::string_view(rest).find('\n'));
    while (!info.host.empty() && (info.host.back() == '\n' || info.host.back() == ' ')) info.host.pop_back();
    if (!info.host.empty() && info.host.front() == ' ') info.host.erase(0, 1);
    return info;
  }

  /// The holder of the lock. It writes its name a moment after it has taken the lock; this waits for that, for at most
  /// a second. pid 0: there is no name. `held`: somebody is known to hold the lock, even if is_held() may not show it
  /// yet.
  DriverInfo holder(bool held = false) const;

 private:
  int fd_;
};

inline struct flock whole_file() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Whether somebody else holds a lock on `file`. False if that cannot be determined.
inline bool is_held(const LockFile& file) {
  struct flock lock = whole_file();
  return file.get() >= 0 && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

inline std::string host_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return host.data();
}

inline DriverInfo LockFile::holder(bool held) const {
  for (int tries = 100;; --tries) {
    DriverInfo info = read();
    // The name of a driver that was killed says nothing about the present holder.
    const bool left = info.host == host_name() && ::kill(static_cast<pid_t>(info.pid), 0) != 0 && errno == ESRCH;
    if (tries == 0 || (info.pid > 0 && !left)) return info;
    if (!held && !is_held(*this)) return info;
    ::poll(nullptr, 0, 10);
  }
}

/// "process 123 on host", for messages.
inline std::string text_of(const DriverInfo& driver) {
  if (driver.pid <= 0) return "a process that has not said which";
  return detail::format("process {} on {}", driver.pid, driver.host.empty() ? "an unknown host" : driver.host);
}

inline std::filesystem::path lock_path(const std::filesystem::path& directory) { return directory / "driver.lock"; }

/// A file descriptor that is closed in processes forked by this one, even if they never exec. The lock of an open file
/// lasts as long as any copy of its descriptor, so a worker forked later would keep it after its driver's death.
class NotInherited {
 public:
  explicit NotInherited(int fd) {
    static const bool once = [] { return ::pthread_atfork(nullptr, nullptr, [] { forget(); }) == 0; }();
    static_cast<void>(once);
    for (auto& place : places()) {
      int free = 0;
      if (!place.compare_exchange_strong(free, fd + 1)) continue;
      place_ = &place;
      return;
    }  // more locks than a process ever holds: the others are inherited
  }
  NotInherited(const NotInherited&) = delete;
  NotInherited& operator=(const NotInherited&) = delete;
  NotInherited(NotInherited&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
  NotInherited& operator=(NotInherited&& other) noexcept {
    std::swap(place_, other.place_);
    return *this;
  }
  ~NotInherited() {
    if (place_ != nullptr) place_->store(0);
  }

 private:
  static std::array<std::atomic<int>, 64>& places() {
    static std::array<std::atomic<int>, 64> all{};  // 0: free; else a descriptor plus 1
    return all;
  }
  // Called in the forked process, where only async-signal-safe functions are allowed. The descriptor's number stays in
  // use, because objects that were copied by the fork may still close it.
  static void forget() {
    for (auto& place : places()) {
      const int fd = place.exchange(0) - 1;
      if (fd < 0) continue;
      const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (null < 0 || ::dup3(null, fd, O_CLOEXEC) < 0) ::close(fd);
      if (null >= 0) ::close(null);
    }
  }

  std::atomic<int>* place_ = nullptr;
};

/// The right to drive the experiment in `directory`. There are two locks: one of the folder itself, which remains held
/// wherever the folder is moved and whatever is removed in it, and one of a file, which names the holder. They belong
/// to the open files, not to the process: they also exclude a second Journal in the same process, and no unrelated
/// close() releases them. Forked processes do not inherit them.
class DriverLock {
 public:
  explicit DriverLock(const std::filesystem::path& directory)
      : folder_(lock_folder(directory)),
        folder_alone_(folder_.get()),
        file_(lock_path(directory), O_RDWR | O_CREAT),
        alone_(file_.get()) {
    if (file_.get() < 0) fail(Errc::io, "cannot open '{}': {}", lock_path(directory).string(), std::strerror(errno));
    struct flock lock = whole_file();
    if (::fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) {
      if (errno != EAGAIN && errno != EACCES)
        fail(Errc::io, "cannot lock '{}': {}", lock_path(directory).string(), std::strerror(errno));
      refuse(directory, file_);
    }
    sign();
  }

  /// Creates the lock file again if somebody has removed it, so that this driver remains visible. `directory` must be
  /// the locked folder.
  void keep_file(const std::filesystem::path& directory) {
    struct stat own{}, there{};
    if (::fstat(file_.get(), &own) != 0) return;
    if (::stat(lock_path(directory).c_str(), &there) == 0 ? own.st_dev == there.st_dev && own.st_ino == there.st_ino
                                                          : errno != ENOENT)
      return;
    LockFile file(lock_path(directory), O_RDWR | O_CREAT);
    NotInherited alone(file.get());
    struct flock lock = whole_file();
    if (file.get() < 0 || ::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return;  // the next check tries again
    file_ = std::move(file);
    alone_ = std::move(alone);
    sign();
  }

  /// Notes why this driver ends without having recorded its end, for exit_reason_of(). This works on a full disk, too:
  /// the lock file already has its block.
  void note_exit_reason(std::string_view why) const {
    std::string line(why.substr(0, 1000));
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    if (end_ > 0 && ::pwrite(file_.get(), line.data(), line.size(), end_) < 0) return;
  }

  /// Whether `directory` is the folder that is locked.
  bool is(const std::filesystem::path& directory) const {
    struct stat own{}, there{};
    return ::fstat(folder_.get(), &own) == 0 && ::stat(directory.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
  }
  /// Where the folder is now; empty if it was removed or cannot be found.
  std::filesystem::path place() const {
    std::error_code error;
    const auto place = std::filesystem::read_symlink(detail::format("/proc/self/fd/{}", folder_.get()), error);
    return !error && is(place) ? place : std::filesystem::path();
  }

 private:
  static LockFile lock_folder(const std::filesystem::path& directory) {
    LockFile folder(directory, O_RDONLY | O_DIRECTORY);
    if (folder.get() < 0) fail(Errc::io, "cannot open the folder '{}': {}", directory.string(), std::strerror(errno));
    // If the file system has no such locks, the lock of the file has to do.
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      refuse(directory, LockFile(lock_path(directory), O_RDONLY));
    // Whether flock() is held cannot be asked without taking it. This lock can be asked for; on a folder, which cannot
    // be opened for writing, it can only be a shared one.
    struct flock asked = whole_file();
    asked.l_type = F_RDLCK;
    static_cast<void>(::fcntl(folder.get(), F_OFD_SETLK, &asked));
    return folder;
  }
  [[noreturn]] static void refuse(const std::filesystem::path& directory, const LockFile& file) {
    const DriverInfo other = file.holder(true);
    const std::string who = other.pid == 0       ? std::string()
                            : other.host.empty() ? detail::format(" (process {})", other.pid)
                                                 : detail::format(" (process {} on {})", other.pid, other.host);
    fail(Errc::busy, "the experiment in '{}' is being run by another driver{}: wait until it ends, or stop it",
         directory.string(), who);
  }

  void sign() {
    const std::string text = detail::format("{} {}\n", ::getpid(), host_name());
    // A lock file that cannot be written (disk full) still locks; only the message to another driver is less detailed.
    end_ = 0;
    if (::ftruncate(file_.get(), 0) != 0 || ::pwrite(file_.get(), text.data(), text.size(), 0) < 0) return;
    end_ = static_cast<::off_t>(text.size());
  }

  LockFile folder_;
  NotInherited folder_alone_;
  ::off_t end_ = 0;
  LockFile file_;
  NotInherited alone_;
};

}  // namespace detail

/// The driver that runs the experiment in `directory` now, if any; pid 0: its name is not known. Takes no lock.
inline std::optional<DriverInfo> driver_of(const std::filesystem::path& directory) {
  const detail::LockFile folder(directory, O_RDONLY | O_DIRECTORY);
  for (int tries = 300;; --tries) {
    const detail::LockFile file(detail::lock_path(directory), O_RDONLY);
    if (detail::is_held(file)) return file.holder();
    if (!detail::is_held(folder)) return std::nullopt;
    // The driver is just beginning or ending, or its lock file was removed; it creates that again within a second.
    if (tries == 0) return DriverInfo{};
    ::poll(nullptr, 0, 10);
  }
}

/// Why the last driver of the experiment in `directory` ended without recording its end: an error, such as a full disk.
/// Empty if it left no message, because it was killed, or if a driver is running.
inline std::string exit_reason_of(const std::filesystem::path& directory) {
  const detail::LockFile file(detail::lock_path(directory), O_RDONLY);
  std::array<char, 2000> buffer{};
  const auto size = file.get() < 0 ? -1 : ::pread(file.get(), buffer.data(), buffer.size(), 0);
  if (size <= 0) return {};
  std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  detail::take_until(text, '\n');
  return std::string(detail::take_until(text, '\n'));
}

}  // namespace hypertune::inline v0
