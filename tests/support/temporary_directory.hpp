// A folder of a test's own, gone at its end.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

class TemporaryDirectory {
 public:
  TemporaryDirectory() : TemporaryDirectory(std::filesystem::temp_directory_path()) {}
  explicit TemporaryDirectory(const std::filesystem::path& below) {
    std::string name = (below / "hypertune-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  /// Where a sync costs nothing, for tests that make a thousand journals; the usual place where there is no such thing.
  static std::filesystem::path memory() {
    const std::filesystem::path shm = "/dev/shm";
    return access(shm.c_str(), W_OK) == 0 ? shm : std::filesystem::temp_directory_path();
  }
  const std::filesystem::path& path() const { return path_; }
  operator const std::filesystem::path&() const { return path_; }  // NOLINT: it is one

 private:
  std::filesystem::path path_;
};
