// FileMount: a file or folder of this machine that other machines need.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

struct FileMount {
  std::string remote;           ///< where it appears: "~/x", absolute, or below the working folder
  std::filesystem::path local;  ///< a file or a folder
  /// What to leave out, as ExcludePattern: "*.o" and ".git" at any depth, "data/raw" below the folder.
  std::vector<std::string> exclude = {};
  friend bool operator==(const FileMount&, const FileMount&) = default;
};

}  // namespace hypertune::inline v0
