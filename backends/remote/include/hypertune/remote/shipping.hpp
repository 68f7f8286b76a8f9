// Shipping: a program and its files on a host, by content, so that what is there already does not travel again.
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
  bool check_libraries = true;                 ///< missing shared libraries are an Error that lists them
  int keep = 8;                                ///< this many of the latest versions stay
  Seconds keep_for = 14 * 86400.0;             ///< others go when they have not been used for so long (a day at least)
  TransferOptions transfer = {};
};

struct Shipped {
  std::string path;         ///< on the host, absolute
  std::string hash;         ///< of the content
  bool sent = false;        ///< false: it was there already
  std::uint64_t bytes = 0;  ///< that travelled
};

struct Mounted {
  std::string remote;       ///< absolute
  std::string hash;         ///< of the whole content
  std::uint64_t files = 0;  ///< in all
  std::uint64_t sent = 0;   ///< files that travelled
  std::uint64_t bytes = 0;  ///< that travelled
};

/// Puts a program on the host, once per content: at <directory>/bin/<hash>/<name>. Atomic, and safe with several
/// drivers at once. A program for another architecture, a shared library that is missing there, or a folder from which
/// nothing may be executed is a HostError. Scripts are shipped as they are.
Shipped ship_program(const HostShell& shell, const std::filesystem::path& program, const ShipOptions& options = {});
/// The same for the running program.
Shipped ship_self(const HostShell& shell, const ShipOptions& options = {});

/// Brings files to the host: what an earlier version had there does not travel again. `remote` becomes a symbolic link
/// to a folder by content, so that it switches from one whole state to the next in one step, and trials under way keep
/// theirs. What is there and is no such link is never touched, unless it is an empty folder: HostError otherwise.
Mounted mount_files(const HostShell& shell, const FileMount& mount, const ShipOptions& options = {});

/// What ship_program() checks, for a program that is on the host already: `local` is the same one here. Scripts pass.
void check_program(const HostShell& shell, const std::filesystem::path& local, const std::string& remote);

/// What `ldd` says: the libraries, and the versions of libraries, that are missing; for messages and tests.
std::vector<std::string> missing_libraries(std::string_view ldd_output);

/// The architecture of an ELF program as `uname -m` calls it ("x86_64"); empty if it is no ELF file (a script).
std::string program_architecture(const std::filesystem::path& program);

}  // namespace hypertune::inline v0::remote
