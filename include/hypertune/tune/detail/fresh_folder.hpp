// FreshFolder: makes the folder of an experiment, and removes it again if the experiment fails before its first trial.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <filesystem>
#include <system_error>
#include <vector>

namespace hypertune::inline v0::detail {

/// Makes a folder and its parents, and can remove what it made.
class FreshFolder {
 public:
  /// Throws an Error if the folder cannot be made: of kind `io` if the system refused it (permission, a full disk), else
  /// of kind `usage`.
  explicit FreshFolder(const std::filesystem::path& folder) : folder_(folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (fs::path path = folder_.lexically_normal(); !path.empty() && !fs::exists(path, error) && !error;
         path = path.parent_path())
      made_.push_back(path);
    error.clear();
    if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path(), error);
    if (!error) is_new_ = fs::create_directory(folder_, error);
    if (!error) return;
    const bool refused = error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
                         error == std::errc::read_only_file_system || error == std::errc::no_space_on_device;
    fail(refused ? Errc::io : Errc::usage, "cannot make the folder '{}': {}", folder_.string(), error.message());
  }

  /// Whether the folder was made here: of several drivers at the same time, one is told so.
  bool is_new() const { return is_new_; }

  /// Removes a journal without any trial, so that the same folder can be used again, and those folders made here that
  /// are empty. `release` closes the journal.
  template <class Release>
  void take_back(const Release& release) const {
    std::error_code ignored;
    for (const char* file : {"experiment.db", "experiment.db-wal", "experiment.db-shm"})
      std::filesystem::remove(folder_ / file, ignored);  // while this process still holds the lock
    release();
    for (const char* file : {"experiment.db-wal", "experiment.db-shm", "driver.lock", "trials"})
      std::filesystem::remove(folder_ / file, ignored);
    remove_empty();
  }
  /// Removes those folders made here that are empty.
  void remove_empty() const {
    std::error_code ignored;
    for (const auto& path : made_) std::filesystem::remove(path, ignored);  // fails unless empty
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // innermost first
  bool is_new_ = false;
};

}  // namespace hypertune::inline v0::detail
