// KeeperAgents: the agents of a pod.
#include "keeper_agents.hpp"

#include <hypertune/detail/socket_pair.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/pod_keeper.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::k8s {
KeeperAgents::KeeperAgents(asio::io_context& io, std::filesystem::path folder, std::function<void()> changed)
    : io_(io), folder_(std::move(folder)), changed_(std::move(changed)) {}

KeeperAgents::Streams KeeperAgents::start(const std::vector<std::string>& command) {
  auto [stream, theirs] = hypertune::detail::make_socket_pair();
  auto [err, their_err] = hypertune::detail::make_socket_pair();
  process::SpawnOptions options{
      .in = theirs.get(), .out = theirs.get(), .err = their_err.get(), .death_signal = SIGKILL};
  // Trials must not get the token, and the keeper knows this agent without a mark.
  options.environment[std::string(token_variable)] = std::nullopt;
  options.environment[std::string(agents_variable)] = std::nullopt;
  child_.emplace(command, options);
  return {std::move(stream), std::move(err)};
}

void KeeperAgents::kill_child() {
  if (child_runs()) child_->signal(SIGKILL);
}

bool KeeperAgents::any() {
  const auto marked = process::marked_processes(folder_);
  for (const auto& agent : marked) watch(agent);
  return child_runs() || !watched_.empty();  // watched_ also has an agent that has removed its mark and is about to end
}

// These processes are not children of the keeper, so waitpid() does not report their end.
void KeeperAgents::watch(const process::MarkedProcess& agent) {
  if (std::find(watched_.begin(), watched_.end(), agent.pid()) != watched_.end()) return;
  watched_.push_back(agent.pid());
  const auto handle = std::make_shared<asio::posix::stream_descriptor>(io_);
  ErrorCode error;
  handle->assign(::fcntl(agent.exit_event(), F_DUPFD_CLOEXEC, 0), error);
  handle->async_wait(asio::posix::descriptor_base::wait_read, [this, handle, pid = agent.pid()](ErrorCode) {
    std::erase(watched_, pid);
    changed_();
  });
}

void KeeperAgents::signal(int number) {
  if (child_runs()) child_->signal(number);
  for (const auto& agent : process::marked_processes(folder_)) agent.signal(number);
}

void KeeperAgents::reap() {
  for (;;) {
    // Leave the child to its Subprocess, which waits for it; until then its pid cannot be reused.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (child_runs() && info.si_pid == child_->pid()) {
      child_->wait();
      changed_();
    } else {
      ::waitpid(info.si_pid, nullptr, 0);
    }
  }
}

}  // namespace hypertune::inline v0::k8s
