// Deleting a folder with all that is in it.
#pragma once

#include <hypertune/detail/descriptor.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// Gives this user all rights on a folder and on those below it, as far as they are this user's. Follows no links.
inline void make_folders_writable(int parent, const char* name) {
  const Descriptor place = open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  struct stat status{};
  if (!place || ::fstat(place.get(), &status) != 0) return;
  if ((status.st_mode & S_IRWXU) != S_IRWXU) {
    const std::string path = "/proc/self/fd/" + std::to_string(place.get());  // fchmod() refuses O_PATH
    if (::chmod(path.c_str(), (status.st_mode & 07777U) | S_IRWXU) != 0) return;
  }
  const int at = ::openat(place.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return;
  DIR* entries = ::fdopendir(at);
  if (entries == nullptr) {
    ::close(at);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view child = entry->d_name;
    if (child == "." || child == ".." || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)) continue;
    make_folders_writable(at, entry->d_name);
  }
  ::closedir(entries);
}

/// Deletes a file, a link or a folder with all that is in it, without following links. Folders that do not let their
/// owner change them, as programs that protect their files leave them (Go's modules, Nix, `cp -a` of a read-only disk),
/// are deleted all the same. No error if there is nothing.
inline void remove_tree(const std::filesystem::path& path, std::error_code& error) {
  std::filesystem::remove_all(path, error);
  if (error != std::errc::permission_denied && error != std::errc::operation_not_permitted) return;
  make_folders_writable(AT_FDCWD, path.c_str());
  std::filesystem::remove_all(path, error);
}

/// The same; what cannot be deleted is left.
inline void remove_tree(const std::filesystem::path& path) {
  std::error_code ignored;
  remove_tree(path, ignored);
}

}  // namespace hypertune::inline v0::detail
