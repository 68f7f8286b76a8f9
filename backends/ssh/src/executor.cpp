// From a list of hosts to a pool of agents.
#include "remote_error.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/executor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::ssh {
namespace detail {

/// One host of the list: its connection, and how an agent comes to be there.
class SshDialer {
 public:
  SshDialer(HostSpec host, std::shared_ptr<const SshSetup> setup, std::shared_ptr<remote::Notices> notices)
      : host_(std::move(host)), setup_(std::move(setup)), notices_(std::move(notices)) {}

  remote::AgentStream dial(const std::stop_token& stop) {
    try {
      std::stop_source until_dialled;  // what runs over the connection from then on is not for `stop` to end
      const std::stop_callback relay(stop, [&] { until_dialled.request_stop(); });
      return remote::CommandDialer(prepare(until_dialled.get_token())).dial(stop);
    } catch (const SshError& error) {
      std::string why = error.what();  // whoever tells it names the host
      if (const auto name = fmt::format("host '{}': ", host_.name); why.starts_with(name)) why.erase(0, name.size());
      throw remote::DialError(error.problem() == Problem::name_not_found ? classify(why) : failure_of(error.problem()),
                              why, error.code());
    }
  }
  remote::FailureClass classify(const std::string& said) const { return classify_agent(host_.name, said); }

 private:
  // Returns the command that starts an agent there.
  std::vector<std::string> prepare(const std::stop_token& stop) {
    // A connection that had an agent may still hold what is left of it: it ends with the connection.
    connection_.reset();
    connection_ = SshConnection::open(host_.name, setup_->ssh, setup_->ssh.connect_timeout * 2 + 10, stop);
    const auto shipped = setup_->program.empty() ? ship_self(*connection_, setup_->ship)
                                                 : ship_program(*connection_, setup_->program, setup_->ship);
    const auto folder = connection_->absolute(setup_->directory);
    for (auto mount : setup_->mounts) {
      if (!mount.remote.starts_with('/') && !mount.remote.starts_with('~')) mount.remote = folder + "/" + mount.remote;
      const auto mounted = mount_files(*connection_, mount, setup_->ship);
      for (const auto& program : setup_->programs)
        if (program == mount.local) check_program(*connection_, program, mounted.remote);
    }
    check_needs(folder);
    if (connection_->facts().clock_skewed() && !std::exchange(clock_told_, true))
      notices_->say(
          fmt::format("host '{}': its clock is {:.0f} s {}: times of files and logs from there mislead, "
                      "nothing else depends on it",
                      host_.name, std::abs(connection_->facts().clock_ahead),
                      connection_->facts().clock_ahead > 0 ? "ahead" : "behind"));
    std::vector<std::string> words{
        "sh",   "-c",        std::string(start_script), "hypertune", setup_->remote.transfer.shared ? "007" : "077",
        folder, shipped.path};
    words.insert(words.end(), setup_->arguments.begin(), setup_->arguments.end());
    words.insert(words.end(), {"--hypertune-agent", remote::agent_limits_text(host_)});
    return connection_->command(words);
  }

  // Nobody else enters the folder that is made here, unless the disk is shared with other accounts. What trials make is
  // as the account wants it, but that on such a disk the driver's account must be able to move it.
  static constexpr std::string_view start_script = R"sh(own=$(umask)
umask "$1"
mkdir -p -- "$2" && cd -- "$2" || exit 1
umask "$own"
if [ "$1" = 007 ]; then umask g=rwx; fi
shift 2
exec "$@")sh";

  // What is missing would fail in every trial alike.
  void check_needs(const std::string& folder) const {
    if (setup_->needs.empty()) return;
    std::vector<std::string> words{folder};
    words.insert(words.end(), setup_->needs.begin(), setup_->needs.end());
    const auto seen = connection_->script(R"sh(
mkdir -p -- "$1" && cd -- "$1" || exit 1
shift
for program do
  command -v -- "$program" >/dev/null || { printf '\nhypertune-missing %s\n' "$program"; exit 0; }
done
)sh",
                                          words);
    if (!seen.ok()) throw remote_error(host_.name, fmt::format("use the folder '{}'", folder), seen);
    const std::string mark = "\nhypertune-missing ";
    const auto at = seen.out.find(mark);
    if (at == std::string::npos) return;
    const auto program = last_line(seen.out.substr(at + mark.size()));
    const bool path = program.find('/') != std::string::npos;
    throw SshError(Problem::missing_program, host_.name,
                   fmt::format("host '{}': there is no program '{}' {}: {}", host_.name, program,
                               path ? fmt::format("that may be run in '{}'", folder) : "in its PATH",
                               path ? "bring it there with file_mounts" : "install it there, or name it by its path"));
  }

  HostSpec host_;
  std::shared_ptr<const SshSetup> setup_;
  std::shared_ptr<remote::Notices> notices_;
  bool clock_told_ = false;
  std::optional<SshConnection> connection_;
};

}  // namespace detail

SshSetup detail::with_environment(SshSetup setup) {
  if (setup.hosts.given()) return setup;
  auto hosts = HostSource::environment();
  if (!hosts) return setup;
  setup.hosts = std::move(*hosts);
  const char* config = std::getenv("HYPERTUNE_SSH_CONFIG");
  if (setup.ssh.config.empty() && config != nullptr) setup.ssh.config = config;
  const char* notices = std::getenv("HYPERTUNE_NOTICE_URL");
  if (setup.remote.notice_command.empty() && setup.remote.notice_url.empty() && notices != nullptr)
    setup.remote.notice_url = notices;
  return setup;
}

SshExecutor::SshExecutor(SshSetup setup)
    : SshExecutor(std::make_shared<const SshSetup>(detail::with_environment(std::move(setup)))) {}

SshExecutor::SshExecutor(const std::shared_ptr<const SshSetup>& setup, std::shared_ptr<remote::Notices> notices)
    : ListedExecutor(
          {.name = "ssh", .hosts = setup->hosts, .limits = setup->limits, .remote = setup->remote},
          [setup, notices](const HostSpec& host) -> remote::AnyDialer {
            return detail::SshDialer(host, setup, notices);
          },
          notices) {
  setup->ssh.validate();
}

}  // namespace hypertune::inline v0::ssh
