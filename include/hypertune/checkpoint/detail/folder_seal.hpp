// A folder's files: listed and hashed when a checkpoint is sealed, checked against the manifest when it is opened.
#pragma once

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// The result of listing a folder: sorted names relative to it.
struct FolderListing {
  std::vector<std::string> files;
  std::vector<std::string> directories;  ///< parents before their contents
};

/// Lists everything below `root`. Error of kind `usage` if an entry is neither a file nor a folder, or has a name that
/// a manifest cannot contain.
inline FolderListing list_folder(const std::filesystem::path& root) {
  FolderListing listing;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(root, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().lexically_relative(root).string();
    const auto status = entries->symlink_status(error);
    if (error) break;
    require_manifest_name(name);
    if (std::filesystem::is_directory(status)) {
      listing.directories.push_back(std::move(name));
      continue;
    }
    if (!std::filesystem::is_regular_file(status))
      fail(Errc::usage, "'{}' is {}: a checkpoint can hold files and folders only", name,
           std::filesystem::is_symlink(status) ? "a symbolic link" : "no ordinary file");
    listing.files.push_back(std::move(name));
  }
  if (error) fail_io(error.value(), "list", root);
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.directories.begin(), listing.directories.end());
  return listing;
}

/// Determines the size and checksum of an open file. Returns 0, or the errno of the read that failed.
inline int hash_file(int fd, ReadBuffer& buffer, ManifestFile& file) {
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  ContentHash hash;
  file.size = 0;
  for (;;) {
    const ssize_t n = read_some(fd, buffer.data(), ReadBuffer::size);
    if (n < 0) return errno;
    if (n == 0) break;
    hash.add(buffer.data(), static_cast<std::size_t>(n));
    file.size += static_cast<std::uint64_t>(n);
  }
  file.checksum = hash.hex();
  return 0;
}

/// Opens a regular file of a checkpoint; on failure, an empty Descriptor with errno.
inline Descriptor open_regular(int root, std::string_view name) {
  Descriptor file = open_below(root, name);
  struct stat status{};
  if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) {
    file = Descriptor();
    errno = ELOOP;
  }
  return file;
}

/// Hashes every file below `root`; with `sync`, also forces files and folders to the disk, which writes during hashing.
inline std::vector<ManifestFile> seal_files(const std::filesystem::path& root, bool sync) {
  const Descriptor directory = open_at(AT_FDCWD, root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) fail_io(errno, "open", root);
  FolderListing listing = list_folder(root);
  std::vector<ManifestFile> files;
  files.reserve(listing.files.size());
  ReadBuffer buffer;
  for (std::string& name : listing.files) {
    const Descriptor file = open_regular(directory.get(), name);
    if (!file) fail_io(errno, "open", root / name);
#ifdef __linux__
    if (sync) ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // starts writing; fsync below waits for it
#endif
    ManifestFile entry{.name = std::move(name), .size = 0, .checksum = {}};
    if (const int error = hash_file(file.get(), buffer, entry); error != 0) fail_io(error, "read", root / entry.name);
    files.push_back(std::move(entry));
  }
  if (!sync) return files;
  for (const auto& entry : files) {
    const Descriptor file = open_regular(directory.get(), entry.name);
    if (!file) fail_io(errno, "open", root / entry.name);
    struct stat status{};
    if (::fsync(file.get()) != 0) fail_io(errno, "sync", root / entry.name);
    if (::fstat(file.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != entry.size)
      fail(Errc::usage, "'{}' changed while its checkpoint was sealed: close every file before save() returns",
           entry.name);
  }
  for (const auto& name : listing.directories) sync_directory(root / name);
  return files;
}

/// Opens a file below `root`, the descriptor of `path`. Error of kind `corrupt` if it is missing or has another size.
inline Descriptor open_sealed(int root, const std::filesystem::path& path, const ManifestFile& expected) {
  const auto& name = expected.name;
  Descriptor file = open_regular(root, name);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) fail(Errc::corrupt, "file '{}' is missing", name);
    if (errno == ELOOP || errno == ENXIO) fail(Errc::corrupt, "'{}' is no ordinary file any more", name);
    fail_io(errno, "open", path / name);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail_io(errno, "look at", path / name);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size != expected.size)
    fail(Errc::corrupt, "file '{}' has {} bytes, but {} were sealed", name, size, expected.size);
  return file;
}

/// Checks that the files below `root` exist and have the right sizes. The Error of kind `corrupt` names the first one
/// that does not.
inline void verify_sizes(const std::filesystem::path& root, const Manifest& manifest) {
  const Descriptor directory = open_at(AT_FDCWD, root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) fail_io(errno, "open", root);
  for (const ManifestFile& expected : manifest.files) open_sealed(directory.get(), root, expected);
}

/// Checks the files below `root` against the manifest. The Error of kind `corrupt` names the first wrong one.
inline void verify_files(const std::filesystem::path& root, const Manifest& manifest) {
  const Descriptor directory = open_at(AT_FDCWD, root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) fail_io(errno, "open", root);
  ReadBuffer buffer;
  for (const ManifestFile& expected : manifest.files) {
    const auto& name = expected.name;
    const Descriptor file = open_sealed(directory.get(), root, expected);
    ManifestFile found{.name = name, .size = 0, .checksum = {}};
    const int error = hash_file(file.get(), buffer, found);
    if (error == EIO) fail(Errc::corrupt, "file '{}' cannot be read: the disk reports an error", name);
    if (error != 0) fail_io(error, "read", root / name);
    if (found != expected)
      fail(Errc::corrupt, "the content of file '{}' has changed: its checksum is {}, not {}", name, found.checksum,
           expected.checksum);
  }
}

}  // namespace hypertune::inline v0::detail
