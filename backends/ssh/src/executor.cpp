// SshExecutor: connects to the hosts of a list and starts agents there.
#include "as_ssh_error.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/notices.hpp>
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

/// Connects to one host of the list and starts an agent there.
class SshDialer {
 public:
  SshDialer(HostOptions host, std::shared_ptr<const SshSetup> setup, std::shared_ptr<remote::Notices> notices)
      : host_(std::move(host)), setup_(std::move(setup)), notices_(std::move(notices)) {}

  remote::AgentStream dial(const std::stop_token& stop) {
    try {
      std::stop_source until_dialled;  // later work over the connection must not be ended by `stop`
      const std::stop_callback relay(stop, [&] { until_dialled.request_stop(); });
      return remote::CommandDialer(prepare(until_dialled.get_token())).dial(stop);
    } catch (const SshError& error) {
      std::string why = error.what();  // the caller adds the host's name
      if (const auto name = fmt::format("host '{}': ", host_.name); why.starts_with(name)) why.erase(0, name.size());
      throw remote::DialError(error.problem() == Problem::name_not_found ? classify(why) : failure_of(error.problem()),
                              why, error.code());
    }
  }
  remote::FailureClass classify(const std::string& said) const { return classify_agent(host_.name, said); }

 private:
  // Returns the local command that starts an agent on the host.
  std::vector<std::string> prepare(const std::stop_token& stop) {
    // Processes of an earlier agent may remain; they end with the old connection.
    connection_.reset();
    connection_ = SshConnection::open(host_.name, setup_->ssh, setup_->ssh.connect_timeout * 2 + 10, stop);
    const auto command = as_ssh_error(host_.name, [&] {
      return remote::prepare_agent(connection_->shell(),
                                   {.program = setup_->program,
                                    .arguments = setup_->arguments,
                                    .mounts = setup_->mounts,
                                    .programs = setup_->programs,
                                    .needs = setup_->needs,
                                    .directory = setup_->directory,
                                    .ship = setup_->ship,
                                    .shared = setup_->remote.transfer.shared.has_value()},
                                   host_);
    });
    if (connection_->facts().clock_skewed() && !std::exchange(clock_told_, true))
      notices_->say(
          fmt::format("host '{}': its clock is {:.0f} s {}: times of files and logs from there mislead, "
                      "nothing else depends on it",
                      host_.name, std::abs(connection_->facts().clock_ahead),
                      connection_->facts().clock_ahead > 0 ? "ahead" : "behind"));
    std::vector<std::string> words{"sh", "-c", std::string(address_script), "hypertune"};
    words.insert(words.end(), command.begin(), command.end());
    return connection_->command(words);
  }

  // SSH_CONNECTION contains the client's address and port, then the server's. The zone of a link-local address is
  // removed.
  static constexpr std::string_view address_script = R"sh(if [ -n "${SSH_CONNECTION-}" ]; then
  address=${SSH_CONNECTION#* * }
  address=${address%% *}
  export HYPERTUNE_HOST_ADDRESS="${address%%\%*}"
fi
exec "$@")sh";

  HostOptions host_;
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

remote::ListedHosts ssh_hosts(SshSetup setup, std::shared_ptr<remote::Notices> notices) {
  validate(setup.ssh);
  const auto shared = std::make_shared<const SshSetup>(std::move(setup));
  return {.hosts = shared->hosts,
          .limits = shared->limits,
          .remote = shared->remote,
          .dialer = [shared, notices = std::move(notices)](const HostOptions& host) -> remote::AnyDialer {
            return detail::SshDialer(host, shared, notices);
          }};
}

static remote::ElasticExperiment experiment_of(SshSetup setup) {
  auto notices = std::make_shared<remote::Notices>();
  return {.plan = {}, .hooks = {}, .notices = notices, .listed = ssh_hosts(std::move(setup), notices)};
}
SshExecutor::SshExecutor(SshSetup setup)
    : ElasticExecutor("ssh", experiment_of(detail::with_environment(std::move(setup)))) {}

}  // namespace hypertune::inline v0::ssh
