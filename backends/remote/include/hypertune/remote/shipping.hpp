// Shipping: copies a program and its files to a host, addressed by content, so that existing content is not sent again.
#pragma once

#include <hypertune/files/file_mount.hpp>
#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {

struct ShipOptions {
  std::string directory = ".cache/hypertune";  ///< on the host; relative to the home folder
  bool check_libraries = true;                 ///< check for missing shared libraries; the Error lists them
  int keep = 8;                                ///< number of latest versions that are kept
  Seconds keep_for = 14 * 86400.0;             ///< older versions are removed if unused for this long (at least a day)
  TransferOptions transfer = {};
};

struct Shipped {
  std::string path;         ///< absolute path on the host
  std::string hash;         ///< hash of the content
  bool sent = false;        ///< false: it was on the host already
  std::uint64_t bytes = 0;  ///< bytes sent
};

struct Mounted {
  std::string remote;       ///< absolute path on the host
  std::string hash;         ///< hash of the whole content
  std::uint64_t files = 0;  ///< total number of files
  std::uint64_t sent = 0;   ///< files sent
  std::uint64_t bytes = 0;  ///< bytes sent
};

/// Puts a program on the host, once per content: at <directory>/bin/<hash>/<name>. Atomic, and safe with several
/// drivers at once. Throws HostError if the program is for another architecture, a shared library is missing, or the
/// folder does not allow execution. Scripts are shipped unchanged.
Shipped ship_program(const HostShell& shell, const std::filesystem::path& program, const ShipOptions& options = {});
/// As ship_program(), for the running program.
Shipped ship_self(const HostShell& shell, const ShipOptions& options = {});

/// Copies files to the host; content of earlier versions is not sent again. `remote` becomes a symbolic link to a
/// folder named by content, so that it changes atomically and running trials keep their version. Anything else at
/// `remote` is left alone and is a HostError, except an empty folder.
Mounted mount_files(const HostShell& shell, const FileMount& mount, const ShipOptions& options = {});

/// The checks of ship_program() for a program that is on the host already; `local` is the same program here. Scripts
/// pass.
void check_program(const HostShell& shell, const std::filesystem::path& local, const std::string& remote);

/// The missing libraries and library versions in the output of `ldd`; for messages and tests.
std::vector<std::string> missing_libraries(std::string_view ldd_output);

/// The architecture of an ELF program as in `uname -m` ("x86_64"); empty if it is not an ELF file (a script).
std::string program_architecture(const std::filesystem::path& program);

}  // namespace hypertune::inline v0::remote
