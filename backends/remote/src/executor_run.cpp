// RemoteExecutor: state for other threads, and shutdown.
#include "executor_state.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/say.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

void RemoteExecutor::State::publish(Link& link) {
  if (link.machine.state() != HostState::connecting) link.tried = true;
  const std::lock_guard guard(mutex_);
  if (link.index >= 0) {
    const auto index = static_cast<std::size_t>(link.index);
    if (hosts_.size() <= index) hosts_.resize(index + 1);
    hosts_[index] = link.host;
    hosts_[index].presence = link.machine.usable() ? Presence::there : link.tried ? Presence::away : Presence::unknown;
  }
  if (published_.size() <= link.position) published_.resize(link.position + 1);
  Published& known = published_[link.position];
  known.account = link.account;
  known.account.state = link.machine.state();
  known.account.reason = link.machine.reason();
  known.problem = link.machine.problem();
  known.up_since = link.connection && link.connection->greeted ? std::optional(link.up_since) : std::nullopt;
  const bool usable = link.machine.usable();
  if (known.usable == usable && known.tried == link.tried) return;
  usable_ += (usable ? 1 : 0) - (known.usable ? 1 : 0);
  tried_ += (link.tried ? 1 : 0) - (known.tried ? 1 : 0);
  known.usable = usable;
  known.tried = link.tried;
  tried_changed_.notify_all();
}

// Whether no host will become usable. Hosts without room would fail like the others, so they do not count.
bool RemoteExecutor::State::all_refused() const {
  if (!started_ || closing()) return false;
  bool any = false;
  for (const auto& link : links_) {
    const auto& machine = link->machine;
    if (machine.state() == HostState::gone) continue;
    if (machine.state() == HostState::connecting && link->without_room && !machine.refused()) continue;
    if (machine.up() || !machine.refused()) return false;
    any = true;
  }
  return any;
}

// Ends the run if every host is refused, after the time that the list is given to change.
void RemoteExecutor::State::check_all_refused() {
  if (!all_refused()) {
    refusal_timer_.reset();
    return;
  }
  if (refusal_timer_) return;
  refusal_timer_.emplace(io_, hypertune::detail::as_duration(options_.all_refused));
  refusal_timer_->async_wait([this](boost::system::error_code error) {
    if (error || closing()) return;
    refusal_timer_.reset();
    if (!all_refused()) return;
    hypertune::detail::HostTroubles troubles;
    std::map<std::string, std::string> kinds;
    for (const auto& link : links_)
      if (link->machine.state() != HostState::gone && link->machine.refused()) {
        const auto& why = link->machine.problem();
        // For interchangeable workers, use the same text for all with the same problem.
        const auto& text = options_.interchangeable ? kinds.try_emplace(kind_of_problem(why), why).first->second : why;
        troubles.emplace_back(link->spec.name, text);
      }
    fail_run(hypertune::detail::format("no {} can be used, and that does not pass by itself: {}",
                                       options_.interchangeable ? "worker" : "host",
                                       hypertune::detail::host_troubles_text(troubles)),
             Errc::resources);
  });
}

// The run cannot continue: wait() throws, with the first reason.
void RemoteExecutor::State::fail_run(const std::string& why, Errc code) {
  {
    const std::lock_guard guard(mutex_);
    if (!failure_.empty()) return;
    failure_ =
        hypertune::detail::format("{} (once this is mended, resume the experiment: what it has done is kept)", why);
    failure_code_ = code;
    tried_changed_.notify_all();
  }
  wakeup_.signal();
}

std::vector<HostAccount> RemoteExecutor::State::accounts() {
  const std::lock_guard guard(mutex_);
  std::vector<HostAccount> accounts;
  accounts.reserve(published_.size());
  for (const auto& each : published_) {
    accounts.push_back(each.account);
    if (each.up_since) accounts.back().seconds += detail::steady_now() - *each.up_since;
  }
  return accounts;
}

std::vector<Host> RemoteExecutor::State::hosts() {
  begin();
  const double begun = detail::steady_now();
  std::unique_lock lock(mutex_);
  const auto seconds = [](double s) { return std::chrono::duration<double>(s); };
  const auto all_tried = [&] { return tried_ > 0 && tried_ == published_.size(); };
  const auto answered = [&] { return usable_ > 0 || all_tried() || !failure_.empty(); };
  // After some seconds without an answer, tell the user.
  const double most = options_.timeouts.connect + 1, quiet = std::min(5.0, most / 2);
  if (!tried_changed_.wait_for(lock, seconds(quiet), answered)) {
    std::vector<std::string> silent;
    for (const auto& each : published_)
      if (!each.tried) silent.push_back(each.account.name);
    lock.unlock();  // writing to a terminal may block
    if (!silent.empty())
      hypertune::detail::say("hypertune: no answer yet from " +
                             hypertune::detail::hosts_text({silent.begin(), silent.end()}) + ": waiting");
    lock.lock();
    tried_changed_.wait_for(lock, seconds(most - quiet), answered);
  }
  const double took = detail::steady_now() - begun;
  tried_changed_.wait_for(lock, seconds(std::min(options_.gather, std::max(1.0, took))), all_tried);
  if (usable_ == 0) {
    if (!failure_.empty()) fail(failure_code_, "{}", failure_);
    hypertune::detail::HostTroubles troubles;
    for (const auto& each : published_)
      if (!each.problem.empty()) troubles.emplace_back(each.account.name, each.problem);
    fail(Errc::resources, "no host can be used: {}",
         troubles.empty() ? "there is none on the list" : hypertune::detail::host_troubles_text(troubles));
  }
  return hosts_;
}

void RemoteExecutor::State::shutdown() {
  if (!thread_.joinable()) return;
  pool_.on_change(nullptr);
  closing_.request_stop();
  stop_dialing_.request_stop();  // does not wait for hanging connection attempts
  detail::asio::post(io_, [this] {
    hypertune::detail::spawn(io_, close_connections(), [this](const std::string&) { stop_thread(); });
  });
  thread_.join();
  for (const auto& link : links_)
    if (link->connection) link->connection->stop.request_stop();
  checkpoints_.stop();
  ends_->join();
  checkpoints_.join();
  dials_->join();  // last, because the kernel ends processes whose starting thread ends
  io_.restart();
  io_.poll();     // releases pending handlers and coroutines
  io_.restart();  // for a further run
  dials_.reset();
  ends_.reset();
  checkpoints_.reset();
  closing_ = {};
  stop_dialing_ = {};
  by_run_.clear();
  groups_.clear();
  refusal_timer_.reset();
  links_.clear();
  by_index_.clear();
  start_ = {};
  started_ = active_ = start_called_ = false;
  early_.clear();
  const std::lock_guard guard(mutex_);
  queue_.clear();
  failure_.clear();
  woken_ = false;
}

// Agents end their idle processes. The carriers then end by themselves, or by force after the grace period.
detail::asio::awaitable<void> RemoteExecutor::State::close_connections() {
  constexpr double grace = 2;
  std::vector<std::shared_ptr<detail::Channel>> channels;
  for (const auto& link : links_) {
    link->timer.cancel();
    refusal_timer_.reset();
    if (!link->connection) continue;
    channels.push_back(link->connection->channel);
    close(link, link->connection->greeted ? grace : 0);  // without a hello there is nothing to end properly
    publish(*link);
  }
  const Seconds until = detail::steady_now() + grace;
  detail::Wakeup pause(io_);
  for (const auto& channel : channels)
    while (!channel->closed() && detail::steady_now() < until) co_await pause.wait(0.002);
  for (const auto& channel : channels) channel->close();
  while (ending_ > 0 && detail::steady_now() < until + 0.5) co_await pause.wait(0.002);  // then by force
  stop_thread();
}

void RemoteExecutor::State::stop_thread() {
  work_.reset();
  io_.stop();
}

}  // namespace hypertune::inline v0::remote
