// Shipping programs and files to hosts over ssh.
#include "as_ssh_error.hpp"

#include <hypertune/ssh/shipping.hpp>

#include <filesystem>
#include <string>

namespace hypertune::inline v0::ssh {

Shipped ship_program(const SshConnection& connection, const std::filesystem::path& program,
                     const ShipOptions& options) {
  return detail::as_ssh_error(connection.host(),
                              [&] { return remote::ship_program(connection.shell(), program, options); });
}
Shipped ship_self(const SshConnection& connection, const ShipOptions& options) {
  return detail::as_ssh_error(connection.host(), [&] { return remote::ship_self(connection.shell(), options); });
}
Mounted mount_files(const SshConnection& connection, const FileMount& mount, const ShipOptions& options) {
  return detail::as_ssh_error(connection.host(),
                              [&] { return remote::mount_files(connection.shell(), mount, options); });
}
void check_program(const SshConnection& connection, const std::filesystem::path& local, const std::string& remote) {
  detail::as_ssh_error(connection.host(), [&] { remote::check_program(connection.shell(), local, remote); });
}

}  // namespace hypertune::inline v0::ssh
