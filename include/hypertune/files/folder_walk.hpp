// Lists a folder: its files, links and folders, without those that patterns exclude.
#pragma once

#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// One pattern in the syntax of rsync and .gitignore: `*.o` and `build/` at any depth, `/x` and `a/b` from the folder
/// of the pattern, `**` for any folders between; `!` cancels an earlier pattern.
struct ExcludePattern {
  std::string glob;
  bool anchored = false, folders_only = false, negated = false;

  explicit ExcludePattern(std::string_view text) {
    negated = take(text, "!");
    take(text, "./");
    for (; text.size() > 1 && text.ends_with('/'); text.remove_suffix(1)) folders_only = true;
    if (text.starts_with("**/") && text.find('/', 3) == std::string_view::npos) text.remove_prefix(3);  // any depth
    anchored = take(text, "/") || text.find('/') != std::string_view::npos;
    glob = text;
  }
  /// Whether the pattern matches `path`, which is relative to the folder of the pattern.
  bool matches(std::string_view path, bool folder) const {
    if (folders_only && !folder) return false;
    return matches_parts(glob, anchored ? path : path.substr(path.rfind('/') + 1));
  }

 private:
  static bool take(std::string_view& text, std::string_view prefix) {
    const bool taken = text.starts_with(prefix);
    if (taken) text.remove_prefix(prefix.size());
    return taken;
  }
  /// Removes the first part of a path and returns it.
  static std::string next(std::string_view& path) { return std::string(detail::take_until(path, '/')); }
  /// Compares part by part. If a part does not match, the last `**` takes one more; earlier choices need no revision.
  static bool matches_parts(std::string_view glob, std::string_view path) {
    std::string_view again_glob, again_path;
    bool again = false;
    while (!path.empty()) {
      auto rest = glob;
      const std::string part = next(rest);
      if (part == "**") {
        if (rest.empty()) return true;
        glob = again_glob = rest;
        again_path = path;
        again = true;
        continue;
      }
      auto below = path;
      const std::string name = next(below);
      if (!glob.empty() && ::fnmatch(part.c_str(), name.c_str(), 0) == 0) {
        glob = rest;
        path = below;
      } else if (again) {
        next(again_path);
        glob = again_glob;
        path = again_path;
      } else {
        return false;
      }
    }
    return glob.empty();
  }
};

/// Whether `path`, relative to the folder of the patterns, is excluded itself (not because of a folder above it).
inline bool excluded(const std::vector<ExcludePattern>& patterns, std::string_view path, bool folder) {
  bool out = false;
  for (const auto& pattern : patterns)
    if (pattern.negated == out && pattern.matches(path, folder)) out = !out;
  return out;
}

/// What is excluded from a folder.
struct FolderRules {
  std::vector<std::string> exclude = {};  ///< patterns
  std::vector<std::string> filter = {};   ///< names of files that contain patterns, for their folder and those below
};

/// A file, symbolic link or folder, as lstat(2) describes it.
struct FolderEntry {
  std::string path;  ///< below the folder
  struct stat info{};
  bool is_folder() const { return S_ISDIR(info.st_mode); }
  bool is_link() const { return S_ISLNK(info.st_mode); }
};

namespace detail {

class FolderWalk {
 public:
  FolderWalk(const std::filesystem::path& root, const FolderRules& rules) : root_(root), rules_(rules) {
    for (const auto& text : rules.exclude) patterns_.emplace_back(text);
    walk("", 0);
  }
  std::vector<FolderEntry> entries;

 private:
  void walk(const std::string& below, int depth) {
    if (depth > 200) fail(Errc::input, "'{}' is nested more than 200 folders deep", root_.string());
    const auto folder = below.empty() ? root_ : root_ / below;
    local_.emplace_back(below, patterns_in(folder));
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) fail(Errc::io, "cannot read the folder '{}': {}", folder.string(), error.message());
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
      FolderEntry entry{below.empty() ? name : below + "/" + name};
      if (::lstat((root_ / entry.path).c_str(), &entry.info) != 0) continue;  // deleted in the meantime
      const bool is_folder = entry.is_folder();
      if (!is_folder && !entry.is_link() && !S_ISREG(entry.info.st_mode)) continue;  // sockets, devices
      if (left_out(entry.path, is_folder)) continue;
      entries.push_back(entry);
      if (is_folder) walk(entry.path, depth + 1);
    }
    local_.pop_back();
  }
  std::vector<ExcludePattern> patterns_in(const std::filesystem::path& folder) const {
    std::vector<ExcludePattern> patterns;
    for (const auto& name : rules_.filter) {
      std::ifstream lines(folder / name, std::ios::binary);  // a folder has no lines
      for (std::string line; std::getline(lines, line);) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.pop_back();
        if (!line.empty() && line.front() != '#') patterns.emplace_back(line);
      }
    }
    return patterns;
  }
  bool left_out(std::string_view path, bool folder) const {
    if (excluded(patterns_, path, folder)) return true;
    return std::any_of(local_.begin(), local_.end(), [&](const auto& entry) {
      return excluded(entry.second, path.substr(entry.first.empty() ? 0 : entry.first.size() + 1), folder);
    });
  }

  std::filesystem::path root_;
  const FolderRules& rules_;
  std::vector<ExcludePattern> patterns_;
  std::vector<std::pair<std::string, std::vector<ExcludePattern>>> local_;  // with the folder to which they apply
};

}  // namespace detail

/// Everything below a folder, sorted, each folder before its contents. Links are not followed. Entries that disappear
/// during the walk, and those that are neither file, link nor folder, are left out. Error if a folder cannot be read.
inline std::vector<FolderEntry> walk_folder(const std::filesystem::path& folder, const FolderRules& rules = {}) {
  return detail::FolderWalk(folder, rules).entries;
}

}  // namespace hypertune::inline v0
