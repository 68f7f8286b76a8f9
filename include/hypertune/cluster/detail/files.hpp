// Small files that are written completely or not at all.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::cluster::detail {

inline void write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  if (const int error = hypertune::detail::write_all(fd, text))
    fail(Errc::io, "cannot write '{}': {}", path.string(), std::strerror(error));
}

using hypertune::detail::read_file;
using hypertune::detail::sync_folder;

/// Readable only by this user, since the files contain names of machines and tokens.
inline void replace_file(const std::filesystem::path& path, std::string_view text) {
  hypertune::detail::replace_file(path, text, 0600);
}

// A file that is removed at the end of the scope.
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
