// Copying files to and from a host.
#pragma once

#include <hypertune/remote/host_shell.hpp>
#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {

struct TransferOptions {
  Seconds deadline = 3600;
  /// Seconds without any progress after which the transfer is aborted.
  Seconds stall = 60;
  int mode = -1;  ///< permission bits of the new file; negative: those of the source
};

/// Copies a file. The file appears on the host completely or not at all, even if the connection breaks. Relative remote
/// paths and "~/…" are below the home folder; missing folders are made. Throws HostError, or the shell's errors.
void upload(const HostShell& shell, const std::filesystem::path& local, const std::string& remote,
            const TransferOptions& options = {});
/// As upload(), for bytes in memory.
void upload_text(const HostShell& shell, std::string_view bytes, const std::string& remote,
                 const TransferOptions& options = {});
/// Copies `paths` (files, symbolic links and folders below `local`, each folder before its content) into the folder
/// `remote`, which keeps everything else that it has. Not atomic. Throws HostError, or the shell's errors.
void upload_folder(const HostShell& shell, const std::filesystem::path& local, const std::vector<std::string>& paths,
                   const std::string& remote, const std::stop_token& stop = {});
/// Copies a file from the host; `local` appears completely or not at all.
void download(const HostShell& shell, const std::string& remote, const std::filesystem::path& local,
              const TransferOptions& options = {});

}  // namespace hypertune::inline v0::remote
