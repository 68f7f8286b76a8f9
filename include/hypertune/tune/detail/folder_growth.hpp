// What the folders of trials take of the disk.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/trial/trial.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::detail {

/// What the files below a folder take of the disk. Of more than 10,000 files those that are found first are counted.
/// `but`: a folder in it that is left out.
inline double bytes_below(const std::filesystem::path& folder, const std::filesystem::path& but = {}) {
  constexpr int most = 10'000;
  constexpr double block = 512;  // of st_blocks
  double bytes = 0;
  std::error_code error;
  int n = 0;
  for (std::filesystem::recursive_directory_iterator it(folder, error), last; !error && it != last && n < most;
       it.increment(error), ++n) {
    if (!but.empty() && it.depth() == 0 && it->path().filename() == but) it.disable_recursion_pending();
    if (struct stat about{}; ::lstat(it->path().c_str(), &about) == 0 && S_ISREG(about.st_mode))
      bytes += static_cast<double>(about.st_blocks) * block;
  }
  return bytes;
}

/// Adds up the folders of the trials that have ended, and says once if all of them will take much of the disk.
class FolderGrowth {
 public:
  explicit FolderGrowth(std::filesystem::path trials) : trials_(std::move(trials)) {}

  /// A trial has ended. `planned`: how many trials there will be; 0: as many as there is time for. Returns what its user
  /// is to be told.
  std::optional<std::string> ended(TrialId trial, std::int64_t planned) {
    // Trials within this process have no folder, and may take a few microseconds each: soon few of them are looked at.
    constexpr int many = 100, seldom = 128;
    if (told_ || (absent_ >= many && trial % seldom != 0)) return std::nullopt;
    std::error_code error;
    const auto folder = trials_ / std::to_string(trial);
    if (!is_directory(std::filesystem::symlink_status(folder, error))) {
      ++absent_;
      return std::nullopt;
    }
    absent_ = 0;
    bytes_ += bytes_below(folder, "checkpoints");  // of them only some are kept
    ++count_;
    constexpr double few = 64 * 0x1p20;
    if (bytes_ < few) return std::nullopt;
    const auto space = std::filesystem::space(trials_, error);
    return error ? std::nullopt : told(static_cast<double>(space.available), planned);
  }

  /// The same, of what has been added, on a disk with so many bytes free.
  std::optional<std::string> told(double free, std::int64_t planned) {
    const double there_was = free + bytes_;
    const double all =
        bytes_ * static_cast<double>(std::max<std::int64_t>(planned, count_)) / static_cast<double>(count_);
    if (planned > 0 ? all < there_was / 2 : bytes_ < there_was / 4) return std::nullopt;
    told_ = true;
    const std::string what =
        planned > count_ ? detail::format("{} of them will take {}, and ", planned, size_text(all)) : "";
    return detail::format(
        "the folders of {} trial{} in '{}' take {}, and are kept: {}{} are free; let the trials write less, or delete "
        "what need not be kept",
        count_, plural(count_), trials_.string(), size_text(bytes_), what, size_text(free));
  }

 private:
  std::filesystem::path trials_;
  double bytes_ = 0;
  std::int64_t count_ = 0;
  int absent_ = 0;  // ended trials in a row that were looked at and had no folder
  bool told_ = false;
};

}  // namespace hypertune::inline v0::detail
