// Small files that must be whole or not there.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::cluster::detail {

inline void write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t sent = ::write(fd, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail(Errc::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

inline void sync_folder(const std::filesystem::path& folder) {
  const auto fd = hypertune::detail::open_at(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd) ::fsync(fd.get());
}

/// Replaces a file: after a crash it is the old or the new one.
inline void replace_file(const std::filesystem::path& path, std::string_view text, mode_t mode = 0600) {
  const auto next = path.string() + ".new";
  {
    const auto fd = hypertune::detail::open_at(AT_FDCWD, next.c_str(), O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (!fd) fail(Errc::io, "cannot write '{}': {}", next, std::strerror(errno));
    write_all(fd.get(), text, next);
    if (::fsync(fd.get()) != 0) fail(Errc::io, "cannot write '{}': {}", next, std::strerror(errno));
  }
  std::error_code error;
  std::filesystem::rename(next, path, error);
  if (error) fail(Errc::io, "cannot write '{}': {}", path.string(), error.message());
  sync_folder(path.parent_path());
}

inline std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

// A file that is gone at the end of the scope.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string name = (std::filesystem::temp_directory_path() / "hypertune-list-XXXXXX").string();
    fd_ = hypertune::detail::Descriptor(::mkstemp(name.data()));
    if (!fd_) fail(Errc::io, "cannot make a temporary file: {}", std::strerror(errno));
    path_ = name;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return fd_.get(); }
  void write(std::string_view text) { write_all(fd_.get(), text, path_); }

 private:
  std::filesystem::path path_;
  hypertune::detail::Descriptor fd_;
};

}  // namespace hypertune::inline v0::cluster::detail
