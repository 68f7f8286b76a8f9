// SshConnection: a multiplexed connection to one host, through the user's own ssh client.
#pragma once

#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/options.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::ssh {

using remote::HostFacts;
using remote::RunResult;
using remote::ShellOptions;
using remote::TransferOptions;

namespace detail {
class Master;
using remote::detail::read_facts;
}  // namespace detail

/// A connection to one host. Its ssh process is a child of this program, in its own process group. It ends with
/// close(), the destructor, or the death of this program, however it dies (on Linux the kernel ensures this), and every
/// session over it ends with it. Movable, not copyable; moving is cheap.
///
/// All functions except the destructor and the moves may be called from several threads at once. Every wait has a
/// deadline. Errors are SshError.
class SshConnection {
 public:
  /// Connects to `host`: a name in the ssh_config, a host name or address, or user@name.
  static SshConnection open(const std::string& host, SshOptions options = {}, Seconds deadline = 30,
                            std::stop_token stop = {});

  SshConnection(SshConnection&&) noexcept;
  SshConnection& operator=(SshConnection&&) noexcept;
  ~SshConnection();

  const std::string& host() const;  ///< as given to open()
  const HostFacts& facts() const;   ///< as of open()
  const SshOptions& options() const;

  /// Whether the connection is open, as far as is known here; sends nothing.
  bool alive() const;
  /// Why the connection was lost; nullopt if it is open or was closed by close().
  std::optional<SshError> lost() const;
  /// Calls `then` once when the connection is lost, from a thread of this connection; or immediately, from the calling
  /// thread, if it is lost already. Not called after close(). `then` must not destroy the connection.
  void on_lost(std::function<void(const SshError&)> then);
  /// Waits for an answer of the host and returns the round-trip time in seconds.
  Seconds check(Seconds deadline = 10) const;
  /// Closes the connection and all its sessions; idempotent.
  void close() noexcept;

  /// The local command that runs `arguments` on the host over this connection, for callers that spawn it themselves.
  /// Its standard streams and exit code are those of the remote command (255: the connection failed). Arguments arrive
  /// unchanged, byte by byte. The command is valid while the connection is open; it never opens a connection.
  std::vector<std::string> command(const std::vector<std::string>& arguments) const;

  /// Runs a command and waits for it. At the deadline the local process is killed; the remote command then sees its
  /// input and output close.
  RunResult run(const std::vector<std::string>& arguments, const ShellOptions& options = {}) const;
  /// Runs a POSIX shell script with its $1, $2, …; messages are in the C locale.
  RunResult script(std::string_view text, const std::vector<std::string>& arguments = {},
                   const ShellOptions& options = {}) const;
  /// As script(), but a nonzero exit code throws an Error. `doing` describes the action, as in "make the folder 'x'".
  RunResult must(std::string_view doing, std::string_view text, const std::vector<std::string>& arguments = {},
                 const ShellOptions& options = {}) const;

  /// Copies a file. The file appears on the host completely or not at all, even if the connection breaks. Relative
  /// remote paths and "~/…" are below the home folder; missing folders are made.
  void upload(const std::filesystem::path& local, const std::string& remote, const TransferOptions& options = {}) const;
  /// As upload(), for bytes in memory.
  void upload_text(std::string_view bytes, const std::string& remote, const TransferOptions& options = {}) const;
  /// Copies a file from the host; `local` appears completely or not at all.
  void download(const std::string& remote, const std::filesystem::path& local,
                const TransferOptions& options = {}) const;

  /// Forwards connections to `local` on this machine to `remote` as seen from the host. Each is the absolute path of a
  /// unix socket, address:port, or a port of loopback; the local port must not be 0. Listens only on loopback unless an
  /// address is given. Ends with cancel_forward() or the connection.
  void forward(const std::string& local, const std::string& remote, Seconds deadline = 10) const;
  void cancel_forward(const std::string& local, const std::string& remote) const;
  /// Forwards connections to `remote` on the host to `local` as seen from here. An existing socket at `remote` is
  /// removed.
  void reverse_forward(const std::string& remote, const std::string& local, Seconds deadline = 10) const;
  void cancel_reverse_forward(const std::string& remote, const std::string& local) const;

  /// The host as a HostShell, for the code shared by all kinds of connections; see remote/shipping.hpp. The shell
  /// throws SshError, the functions that use it throw HostError. It shares the connection; after close() it does not
  /// work either.
  remote::HostShell shell() const;

  /// The absolute path of a remote path: "~/x" and "x" are below the home folder.
  std::string absolute(const std::string& remote) const;

 private:
  explicit SshConnection(std::shared_ptr<detail::Master> master);
  std::shared_ptr<detail::Master> master_;
};

}  // namespace hypertune::inline v0::ssh
