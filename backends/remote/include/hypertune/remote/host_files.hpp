// Files to and from a host.
#pragma once

#include <hypertune/remote/host_shell.hpp>
#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote {

struct TransferOptions {
  Seconds deadline = 3600;
  /// Without any byte moving for so long the transfer is given up.
  Seconds stall = 60;
  int mode = -1;  ///< permission bits of the new file; negative: those of the source
};

/// Copies a file. At the other end it appears whole or not at all, also where the connection breaks. Relative remote
/// paths and "~/…" are below the home folder; missing folders are made. Errors are HostError, or what the shell throws.
void upload(const HostShell& shell, const std::filesystem::path& local, const std::string& remote,
            const TransferOptions& options = {});
/// The same for bytes in memory.
void upload_text(const HostShell& shell, std::string_view bytes, const std::string& remote,
                 const TransferOptions& options = {});
/// The other way round; `local` appears whole or not at all.
void download(const HostShell& shell, const std::string& remote, const std::filesystem::path& local,
              const TransferOptions& options = {});

}  // namespace hypertune::inline v0::remote
