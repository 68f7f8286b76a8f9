// RemoteExecutor: what other threads may know, and the end.
#include "executor_state.hpp"

namespace hypertune::inline v0::remote {

void RemoteExecutor::State::publish(Link& link) {
  if (link.machine.state() != HostState::connecting) link.tried = true;
  const std::lock_guard guard(mutex_);
  hosts_.clear();
  troubles_.clear();
  accounts_.clear();
  any_usable_ = false;
  all_tried_ = true;
  for (const auto& other : links_) {
    if (other->index >= 0) {
      if (hosts_.size() <= static_cast<std::size_t>(other->index))
        hosts_.resize(static_cast<std::size_t>(other->index) + 1);
      Host& host = hosts_[static_cast<std::size_t>(other->index)] = other->host;
      host.presence = other->machine.usable() ? Presence::there : other->tried ? Presence::away : Presence::unknown;
    }
    any_usable_ = any_usable_ || other->machine.usable();
    all_tried_ = all_tried_ && other->tried;
    if (!other->machine.reason().empty())
      troubles_.push_back(hypertune::detail::format("host '{}': {}", other->spec.name, other->machine.reason()));
    HostAccount account = other->account;
    account.state = other->machine.state();
    account.reason = other->machine.reason();
    if (other->connection && other->connection->greeted) account.seconds += detail::steady_now() - other->up_since;
    accounts_.push_back(std::move(account));
  }
  tried_.notify_all();
}

// Why no host will be of use, if that is so.
std::string RemoteExecutor::State::hopeless() const {
  std::string why;
  if (!started_ || closing()) return why;
  for (const auto& link : links_) {
    if (link->machine.state() == HostState::gone) continue;
    if (link->machine.up() || !link->machine.refused()) return {};
    why += why.empty() ? "" : "; ";
    why += hypertune::detail::format("host '{}': {}", link->spec.name, link->machine.trouble());
  }
  return why;
}

// Where every host is refused, the run ends, unless the list is given some time to change.
void RemoteExecutor::State::judge() {
  if (hopeless().empty()) {
    hope_.reset();
    return;
  }
  if (hope_) return;
  hope_.emplace(io_, std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(std::clamp(options_.all_refused, 0.0, 1e8))));
  hope_->async_wait([this](boost::system::error_code error) {
    if (error || closing()) return;
    const auto why = hopeless();
    hope_.reset();
    if (why.empty()) return;
    {
      const std::lock_guard guard(mutex_);
      hopeless_ = "no host can be used, and that does not pass by itself: " + why +
                  " (once this is mended, resume the experiment: what it has done is kept)";
    }
    bell_.ring();
  });
}

std::vector<HostAccount> RemoteExecutor::State::accounts() {
  const std::lock_guard guard(mutex_);
  return accounts_;
}

std::vector<Host> RemoteExecutor::State::hosts() {
  begin();
  const double begun = detail::steady_now();
  std::unique_lock lock(mutex_);
  const auto seconds = [](double s) { return std::chrono::duration<double>(s); };
  tried_.wait_for(lock, seconds(options_.timeouts.connect + 1), [&] { return any_usable_ || all_tried_; });
  const double took = detail::steady_now() - begun;
  tried_.wait_for(lock, seconds(std::min(options_.gather, std::max(1.0, took))), [&] { return all_tried_; });
  if (!any_usable_) {
    std::string why;
    for (const auto& trouble : troubles_) why += (why.empty() ? "" : "; ") + trouble;
    fail(Errc::resources, "no host can be used: {}", why.empty() ? "there is none on the list" : why);
  }
  return hosts_;
}

void RemoteExecutor::State::shutdown() {
  if (!thread_.joinable()) return;
  pool_.on_change(nullptr);
  closing_.request_stop();
  stop_dialing_.request_stop();  // who hangs on the way to a host is not waited for
  detail::asio::post(io_, [this] { detail::asio::co_spawn(io_, say_goodbye(), detail::asio::detached); });
  thread_.join();
  for (const auto& link : links_)
    if (link->connection) link->connection->stop.request_stop();
  checkpoints_.stop();
  ends_->join();
  checkpoints_.join();
  dials_->join();  // last: the kernel ends what its threads started
  io_.restart();
  io_.poll();  // what still waited to be told, and what coroutines hold
  dials_.reset();
  ends_.reset();
  checkpoints_.reset();
  stop_dialing_ = {};
  by_trial_.clear();
  hope_.reset();
  links_.clear();
  start_ = {};
  started_ = active_ = start_called_ = false;
  early_.clear();
  const std::lock_guard guard(mutex_);
  queue_.clear();
  hopeless_.clear();
  woken_ = false;
}

// Agents let the processes leave that compute nothing. What carries the connections then ends by itself, or is
// ended by force.
detail::asio::awaitable<void> RemoteExecutor::State::say_goodbye() {
  constexpr double grace = 2;
  std::vector<std::shared_ptr<detail::Channel>> channels;
  for (const auto& link : links_) {
    link->timer.cancel();
    hope_.reset();
    if (!link->connection) continue;
    channels.push_back(link->connection->channel);
    close(link, link->connection->greeted ? grace : 0);  // else there is nothing yet that could leave
  }
  const Seconds until = detail::steady_now() + grace;
  detail::Signal pause(io_);
  for (const auto& channel : channels)
    while (!channel->closed() && detail::steady_now() < until) co_await pause.wait(0.002);
  for (const auto& channel : channels) channel->close();
  while (ending_ > 0 && detail::steady_now() < until + 0.5) co_await pause.wait(0.002);  // then they end by force
  work_.reset();
  io_.stop();
}

}  // namespace hypertune::inline v0::remote
