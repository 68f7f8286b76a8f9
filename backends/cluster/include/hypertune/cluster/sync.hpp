// Copying files to and from machines, without those that rsync_exclude and rsync_filter exclude.
#pragma once

#include <hypertune/files/folder_walk.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// The content of a file or folder to send.
struct FileSet {
  std::filesystem::path root;
  bool folder = false;
  std::vector<std::string> paths;  ///< below a folder, parents first, sorted
  std::uint64_t bytes = 0;
  std::string fingerprint;  ///< hash of names, sizes, times and modes
};
/// Error of kind `input` if there is nothing at `local`.
FileSet scan_files(const std::filesystem::path& local, const FolderRules& rules);

/// Sends a folder's content into the folder `remote`, or a file to `remote` (into it if it ends with '/' or is a
/// folder). Throws remote::HostError, Error, or the shell's errors.
void push_files(const remote::HostShell& shell, const FileSet& files, const std::string& remote,
                const std::stop_token& stop = {});
/// Copies a remote file or the content of a remote folder to `local`. `newer_than`: only files modified after this
/// remote file. Returns the number of files. Error of kind `input` if there is nothing at `remote`.
std::size_t pull_files(const remote::HostShell& shell, const std::string& remote, const std::filesystem::path& local,
                       const std::vector<std::string>& exclude = {}, const std::string& newer_than = {},
                       const std::stop_token& stop = {});

}  // namespace hypertune::inline v0::cluster
