// SshConnection: one host, reached through the user's own ssh client, with one multiplexed connection.
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
using remote::TransferOptions;

struct RunOptions {
  std::string_view input = {};  ///< its standard input
  Seconds deadline = 60;
  std::size_t max_output = std::size_t{64} << 20U;  ///< bytes of each stream; more is an Error
};

namespace detail {
class Master;
using remote::detail::read_facts;
}  // namespace detail

/// A connection to one host. Its ssh process is a child of this program, in a process group of its own; it ends with
/// close(), the destructor, or this program's death, whatever the way (on Linux the kernel sees to that), and every
/// session over it ends with it. Cheap handle: a move keeps the connection, there are no copies.
///
/// Thread-safe: any thread, several at once, but the destructor and move. Everything that waits has a deadline. Errors
/// are SshError.
class SshConnection {
 public:
  /// Connects `host`: a name of the ssh_config, a host's name or address, or user@name.
  static SshConnection open(const std::string& host, SshOptions options = {}, Seconds deadline = 30,
                            std::stop_token stop = {});

  SshConnection(SshConnection&&) noexcept;
  SshConnection& operator=(SshConnection&&) noexcept;
  ~SshConnection();

  const std::string& host() const;  ///< as given to open()
  const HostFacts& facts() const;   ///< as they were when it was opened
  const SshOptions& options() const;

  /// Whether the connection stands as far as is known here. Asks nobody.
  bool alive() const;
  /// Why it does not, once it does not. close() is no loss.
  std::optional<SshError> lost() const;
  /// Calls `then` once, from a thread of this connection, when the connection is lost (at once, from this thread, if
  /// it is already). Not when it is closed. It must not destroy the connection.
  void on_lost(std::function<void(const SshError&)> then);
  /// Makes the host answer: seconds that it took.
  Seconds check(Seconds deadline = 10) const;
  /// Ends the connection and all its sessions; idempotent.
  void close() noexcept;

  /// The local command that runs `arguments` on the host over this connection, for whoever wants to spawn it: its
  /// standard streams and exit code are the remote command's (255: the connection failed). No byte of an argument is
  /// changed on the way. Holds as long as the connection lives, and never connects by itself.
  std::vector<std::string> command(const std::vector<std::string>& arguments) const;

  /// Runs a command and waits for it. It is ended at its deadline here (there it sees its input and output close).
  RunResult run(const std::vector<std::string>& arguments, const RunOptions& options = {}) const;
  /// The same for a script of a POSIX shell with its $1, $2, …; messages are in the C locale.
  RunResult script(std::string_view text, const std::vector<std::string>& arguments = {},
                   const RunOptions& options = {}) const;
  /// The same, and an exit code other than 0 is an Error: `doing` is like "make the folder 'x'".
  RunResult must(std::string_view doing, std::string_view text, const std::vector<std::string>& arguments = {},
                 const RunOptions& options = {}) const;

  /// Copies a file. At the other end it appears whole or not at all, also where the connection breaks. Relative remote
  /// paths and "~/…" are below the home folder; missing folders are made.
  void upload(const std::filesystem::path& local, const std::string& remote, const TransferOptions& options = {}) const;
  /// The same for bytes in memory.
  void upload_text(std::string_view bytes, const std::string& remote, const TransferOptions& options = {}) const;
  /// The other way round; `local` appears whole or not at all.
  void download(const std::string& remote, const std::filesystem::path& local,
                const TransferOptions& options = {}) const;

  /// Whoever connects to `local` here is connected to `remote` as seen from the host. Either is the absolute path of a
  /// unix socket, or address:port, or a port of loopback. A local port 0 is not possible. Nothing listens beyond
  /// loopback unless an address says so. Undone by cancel_forward() or the end of the connection.
  void forward(const std::string& local, const std::string& remote, Seconds deadline = 10) const;
  void cancel_forward(const std::string& local, const std::string& remote) const;
  /// Whoever connects to `remote` there is connected to `local` as seen from here. An old socket at `remote` is
  /// removed.
  void reverse_forward(const std::string& remote, const std::string& local, Seconds deadline = 10) const;
  void cancel_reverse_forward(const std::string& remote, const std::string& local) const;

  /// The host as what is shared by all ways to reach one sees it: see remote/shipping.hpp. Its errors are SshError,
  /// those of its user HostError. It holds the connection; close() ends that for it, too.
  remote::HostShell shell() const;

  /// The absolute form of a remote path: "~/x" and "x" are below the home folder.
  std::string absolute(const std::string& remote) const;

 private:
  explicit SshConnection(std::shared_ptr<detail::Master> master);
  std::shared_ptr<detail::Master> master_;
};

}  // namespace hypertune::inline v0::ssh
