// Shipping over ssh: the functions of remote/shipping.hpp for the host of a connection.
#pragma once

#include <hypertune/remote/shipping.hpp>
#include <hypertune/ssh/connection.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::ssh {

using remote::missing_libraries;
using remote::Mounted;
using remote::program_architecture;
using remote::ShipOptions;
using remote::Shipped;

/// The functions of remote/shipping.hpp, with SshError in place of HostError.
Shipped ship_program(const SshConnection& connection, const std::filesystem::path& program,
                     const ShipOptions& options = {});
Shipped ship_self(const SshConnection& connection, const ShipOptions& options = {});
Mounted mount_files(const SshConnection& connection, const FileMount& mount, const ShipOptions& options = {});
void check_program(const SshConnection& connection, const std::filesystem::path& local, const std::string& remote);

}  // namespace hypertune::inline v0::ssh
