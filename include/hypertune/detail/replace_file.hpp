// Replacing small files atomically.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// Forces a folder's entries to the disk, where that is possible.
inline void sync_folder(const std::filesystem::path& path) {
  if (const auto folder = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY))
    static_cast<void>(::fsync(folder.get()));
}

/// Replaces or creates a file: a reader finds either the old or the new one, complete, also after a crash of the
/// machine. Meanwhile there is a file beside it whose name begins with a dot. Several calls at once are possible; the
/// last one wins. Error of kind `io`; the old file then still exists.
inline void replace_file(const std::filesystem::path& path, std::string_view text, mode_t mode = 0666) {
  static std::atomic<unsigned> count{0};
  const auto aside =
      path.parent_path() / detail::format(".{}-{}-{}", path.filename().string(), ::getpid(), count.fetch_add(1));
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);  // left by an earlier process with this number
  int error = 0;
  {
    const Descriptor file = open_at(AT_FDCWD, aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    error = file ? write_all(file.get(), text) : errno;
    if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  }
  if (error == 0 && ::rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    std::filesystem::remove(aside, ignored);
    fail(Errc::io, "cannot write '{}': {}", path.string(), std::generic_category().message(error));
  }
  // If the folder cannot be forced to the disk, the file is still complete.
  const auto parent = path.parent_path();
  sync_folder(parent.empty() ? "." : parent);
}

}  // namespace hypertune::inline v0::detail
