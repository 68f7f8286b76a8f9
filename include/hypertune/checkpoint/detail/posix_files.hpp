// Files by descriptor: what checkpoints need beyond <filesystem> (no links followed, data forced to the disk).
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::detail {

/// Throws an Error for `error`. `doing`: the verb for the message, such as "write" or "rename".
[[noreturn]] inline void fail_io(int error, std::string_view doing, const std::filesystem::path& path) {
  const std::string why = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT)
    fail(Errc::io, "cannot {} '{}': {}; free some space, or keep fewer checkpoints (keep, max_bytes)", doing,
         path.string(), why);
  fail(Errc::io, "cannot {} '{}': {}", doing, path.string(), why);
}

/// Opens `name` ("a/b/c", already known to be safe) below `root` for reading, without following links. On failure, an
/// empty Descriptor with errno.
inline Descriptor open_below(int root, std::string_view name) {
  Descriptor parent;
  for (int at = root;;) {
    const auto slash = name.find('/');
    const std::string part(name.substr(0, slash));
    if (slash == std::string_view::npos) return open_at(at, part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    Descriptor next = open_at(at, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!next) return next;
    parent = std::move(next);
    at = parent.get();
    name.remove_prefix(slash + 1);
  }
}

/// A buffer for reading whole files: large enough that the number of calls does not matter, small enough for the cache.
class ReadBuffer {
 public:
  static constexpr std::size_t size = std::size_t{256} << 10U;
  char* data() { return bytes_.get(); }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(size);
};

/// Writes a new file and forces it to the disk. Error of kind `io` on failure.
inline void write_new_file(const std::filesystem::path& path, std::string_view text) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!file) fail_io(errno, "create", path);
  if (const int error = write_all(file.get(), text)) fail_io(error, "write", path);
  if (::fsync(file.get()) != 0) fail_io(errno, "sync", path);
}

/// Forces a folder's entries to the disk. File systems that do not support this are assumed to do it by themselves.
inline void sync_directory(const std::filesystem::path& path) {
  const Descriptor directory = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory) fail_io(errno, "open", path);
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP) fail_io(errno, "sync", path);
}

}  // namespace hypertune::inline v0::detail
