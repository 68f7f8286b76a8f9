// A folder that is deleted when it is no longer needed.
#pragma once

#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace hypertune::inline v0::detail {

/// A folder below TMPDIR that only this program uses.
class TemporaryFolder {
 public:
  /// Error of kind `io` if no folder can be made below TMPDIR.
  TemporaryFolder() {
    std::error_code error;
    const auto above = std::filesystem::temp_directory_path(error);
    std::string name = ((error ? std::filesystem::path("/tmp") : above) / "hypertune-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail(Errc::io, "cannot make a folder '{}': {}", name, std::generic_category().message(errno));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { remove_tree(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hypertune::inline v0::detail
