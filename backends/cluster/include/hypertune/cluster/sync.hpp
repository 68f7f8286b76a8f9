// Files to and from machines, with what rsync_exclude and rsync_filter leave out.
#pragma once

#include <hypertune/ssh/connection.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::cluster {

/// One pattern as rsync and .gitignore have them: `*.o` and `build/` at any depth, `/x` and `a/b` from the folder where
/// it stands, `**` across folders; `!` takes back an earlier one.
struct ExcludePattern {
  std::string glob;
  bool anchored = false, folders_only = false, negated = false;
};
ExcludePattern exclude_pattern(std::string_view text);
/// Whether `path`, relative to where the patterns stand, is left out by itself (not by a folder above it).
bool excluded(const std::vector<ExcludePattern>& patterns, std::string_view path, bool folder);

struct SyncRules {
  std::vector<std::string> exclude;  ///< rsync_exclude
  std::vector<std::string> filter;   ///< rsync_filter: names of files with patterns, for their folder and those below
};

/// What there is to send of a file or folder.
struct FileSet {
  std::filesystem::path root;
  bool folder = false;
  std::vector<std::string> paths;  ///< below a folder, parents first, sorted
  std::uint64_t bytes = 0;
  std::string fingerprint;  ///< of names, sizes, times and modes
};
/// Error of kind `input` if there is nothing at `local`. Links are taken as they are, not followed.
FileSet scan_files(const std::filesystem::path& local, const SyncRules& rules);

/// Sends a folder's content into the folder `remote`, or a file to `remote` (into it if it ends with '/' or is a
/// folder). Errors are ssh::SshError or Error.
void push_files(const ssh::SshConnection& connection, const FileSet& files, const std::string& remote,
                const std::function<bool()>& cancelled = {});
/// Brings a remote file or the content of a remote folder to `local`. `newer_than`: only files that were written later
/// than this remote file. Returns how many files came; 0 also where `remote` is not there and `optional`.
std::size_t pull_files(const ssh::SshConnection& connection, const std::string& remote,
                       const std::filesystem::path& local, const std::vector<std::string>& exclude = {},
                       const std::string& newer_than = {}, const std::function<bool()>& cancelled = {});

}  // namespace hypertune::cluster
