// RemoteExecutor: sending commands to hosts and receiving their events.
#include "executor_state.hpp"
#include "memory_kills.hpp"

#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/detail/bounded_log.hpp>

#include <chrono>
#include <fstream>
#include <memory>
#include <random>

namespace hypertune::inline v0::remote {
namespace {

// The name of this experiment on its hosts, and how often it has been started; stored next to its record.
std::pair<std::string, std::uint64_t> next_epoch(const std::filesystem::path& directory) {
  const auto path = directory / "remote";
  std::string id;
  std::uint64_t epoch = 0;
  {
    std::ifstream in(path);
    in >> id >> epoch;
  }
  if (!hypertune::detail::is_hex(id, 16)) {
    std::random_device device;
    id = hypertune::detail::format("{:08x}{:08x}", device(), device());
  }
  ++epoch;
  std::filesystem::create_directories(directory);
  hypertune::detail::replace_file(path, hypertune::detail::format("{} {}\n", id, epoch));
  return {id, epoch};
}

std::string goes_away(const detail::Link& link) {
  return hypertune::detail::format("{} goes away: {}", hypertune::detail::host_text(link.spec.name),
                                   link.machine.problem());
}

}  // namespace

void RemoteExecutor::State::start(ExecutorStart start) {
  begin();
  if (std::exchange(start_called_, true)) fail(Errc::usage, "the executor has been started already");
  auto [id, epoch] = next_epoch(start.directory);
  std::optional<detail::SharedFolder> folder;
  if (options_.transfer.shared) folder.emplace(*options_.transfer.shared, start.directory, id, epoch);
  const auto shared = std::make_shared<ExecutorStart>(std::move(start));
  detail::asio::post(io_, [this, shared, folder = std::move(folder), id = std::move(id), epoch = epoch]() mutable {
    start_ = std::move(*shared);
    groups_.set_network(start_.network);
    started_ = true;
    experiment_ = id;
    epoch_ = epoch;
    checkpoints_.start(start_.directory, std::move(folder));
    for (const auto& link : links_) send_begin(link);
  });
}

void RemoteExecutor::State::perform(Command command) {
  bool wake = false;
  {
    const std::lock_guard guard(mutex_);
    queue_.push_back(std::move(command));
    wake = !std::exchange(woken_, true);
  }
  if (wake) detail::asio::post(io_, [this] { drain_queue(); });
}

void RemoteExecutor::State::wait(Seconds deadline) {
  {
    const std::lock_guard guard(mutex_);
    if (!std::exchange(woken_, true)) detail::asio::post(io_, [this] { drain_queue(); });
    if (!failure_.empty()) fail(failure_code_, "{}", failure_);
  }
  wakeup_.wait_for(deadline - run_clock());
}

void RemoteExecutor::State::drain_queue() {
  constexpr std::size_t max_kept = 256;  // commands; bounds the memory kept for reuse
  carrying_.clear();
  if (carrying_.capacity() > max_kept) std::vector<Command>().swap(carrying_);
  {
    const std::lock_guard guard(mutex_);
    carrying_.swap(queue_);
    woken_ = false;
  }
  if (closing()) return;
  if (!std::exchange(active_, true)) {  // the first command: the Tuner is ready for events
    for (const auto& link : links_) announce(link);
    for (auto& notice : std::exchange(early_, {})) emit(std::move(notice));
  }
  for (auto& command : carrying_)
    if (groups_.perform(command))
      groups_.work();
    else
      std::visit([this](auto& m) { execute(m); }, command);
  carrying_.clear();
}

void RemoteExecutor::State::emit(Event event) {
  if (groups_.on_event(event))
    groups_.work();
  else
    tell(std::move(event));
}
void RemoteExecutor::State::tell(Event event) {
  if (closing() || !start_.sink) return;
  if (active_)
    start_.sink(std::move(event));
  else if (auto* notice = std::get_if<Notice>(&event))
    early_.push_back(std::move(*notice));
}

RemoteExecutor::State::LinkPointer RemoteExecutor::State::link_of(RunKey run) const {
  const auto found = by_run_.find(run);
  return found == by_run_.end() ? nullptr : found->second;
}
void RemoteExecutor::State::erase(const LinkPointer& link, RunKey run) {
  link->routes.erase(run);
  by_run_.erase(run);
}

// ---- Commands ----

void RemoteExecutor::State::execute(Launch& m) {
  const RunKey run = key_of(m);
  const auto refuse = [&](const std::string& why, FailureSource source = FailureSource::infrastructure) {
    emit(Failed{m.trial, m.attempt, Cause{.source = source, .text = why}, run.second});
  };
  if (m.parked) {
    const auto link = link_of(run);
    Route* route = link && link->routes.at(run).attempt == m.attempt ? &link->routes.at(run) : nullptr;
    if (route == nullptr) return refuse("while it was paused: its process is gone");
    if (!route->parked || !route->lost.empty()) {
      const std::string why = hypertune::detail::format("while it was paused: {} was lost: {}",
                                                        hypertune::detail::host_text(link->spec.name), route->lost);
      erase(link, run);
      return refuse(why, FailureSource::preemption);  // neither its own failure nor that of the new host
    }
    route->parked = route->waiting = false;
    if (m.allocation.lead.host != link->index) m.allocation.lead.cpus.clear();  // the core numbers are of another host
    link->connection->channel->send(m);
    return;
  }
  if (const auto old = link_of(run)) erase(old, run);
  const auto index = static_cast<std::size_t>(m.allocation.lead.host);
  if (index >= by_index_.size()) return refuse("there is no such host");
  const LinkPointer link = by_index_[index];
  if (!link->machine.usable()) {
    const bool preempted = link->machine.draining() || link->machine.state() == HostState::gone;
    return refuse(hypertune::detail::format("{} was lost: {}", hypertune::detail::host_text(link->spec.name),
                                            link->machine.problem()),
                  preempted ? FailureSource::preemption : FailureSource::infrastructure);
  }
  checkpoints_.launching(m.trial);
  link->routes[run] = Route{.attempt = m.attempt, .seated = m.seat.has_value(), .restore = m.restore};
  by_run_[run] = link;
  link->connection->channel->send(m);
}

void RemoteExecutor::State::execute(const Continue& m) {
  const auto link = link_of(RunKey(m.trial, m.member));
  Route* route = link ? link->route(m) : nullptr;
  if (route == nullptr || route->parked || route->leaving) return;
  route->waiting = false;
  // A group continues without the members that are about to be lost.
  if (link->machine.draining() && !route->seated) return ask_to_leave(link, RunKey(m.trial, m.member), *route);
  link->connection->channel->send(m);
}

void RemoteExecutor::State::execute(const Pause& m) {
  const auto link = link_of(RunKey(m.trial, m.member));
  Route* route = link ? link->route(m) : nullptr;
  if (route == nullptr || route->parked || route->leaving) return;
  route->waiting = false;
  Pause pause = m;
  pause.save |= link->machine.draining() || !options_.reuse;  // the host will not be there to continue it in memory
  link->connection->channel->send(pause);
}

void RemoteExecutor::State::execute(const Stop& m) {
  const auto link = link_of(RunKey(m.trial, m.member));
  Route* route = link ? link->route(m) : nullptr;
  if (route == nullptr) return;
  const bool parked = route->parked;
  route->stopping = true;
  if (link->machine.up() && link->connection) link->connection->channel->send(m);
  if (parked) {
    erase(link, RunKey(m.trial, m.member));
    leave_if_empty(link);
  }
}

void RemoteExecutor::State::execute(const GroupMessage& m) {
  const auto link = link_of(RunKey(m.trial, m.member));
  if (link && link->route(m) != nullptr && link->connection) link->connection->channel->send(m);
}

// ---- Events ----

void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer& connection, wire::Hello& m) {
  if (connection->greeted) fail(Errc::protocol, "a second Hello");
  wire::require_version(m.version, "agent");
  connection->greeted = true;
  connection->by_content = m.by_content;
  link->host.total = m.host.total;
  link->host.addresses = std::move(m.host.addresses);
  wire::Welcome welcome;
  welcome.host_name = link->spec.name;
  welcome.heartbeat = options_.timeouts.heartbeat_interval();
  welcome.heartbeat_timeout = options_.timeouts.heartbeat;
  connection->channel->send(welcome);
  connection->channel->beat(welcome.heartbeat);
  send_begin(link);
  step(link, [](HostStateMachine& machine) { return machine.hello_received(detail::steady_now()); });
}
void RemoteExecutor::State::on(const LinkPointer&, const ConnectionPointer& connection, wire::Refusal& m) {
  connection->refusal = m.why.empty() ? std::string("its agent refused") : m.why;
  connection->failure = m.permanent ? FailureClass::permanent : FailureClass::transient;
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, Started& m) {
  link->machine.trial_started();
  if (link->route(m) != nullptr) emit(m);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, Reported& m) {
  // Checkpoints come in an Offer, and count when they are here.
  if (m.checkpoint) fail(Errc::protocol, "a report with a checkpoint, which was not offered");
  Route* route = link->route(m);
  if (route == nullptr) return;
  route->waiting = !route->stopping && !route->leaving;
  emit(std::move(m));
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer& connection, Paused& m) {
  Route* route = link->route(m);
  if (route == nullptr) return;
  if (m.parked && (link->machine.draining() || !options_.reuse)) {
    connection->channel->send(Stop{m.trial, m.attempt, false, m.member});
    m.parked = false;
  }
  if (!m.parked) return end(link, m);
  route->parked = true;
  emit(m);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, Finished& m) {
  if (link->route(m) == nullptr) return;
  checkpoints_.ended(m.trial);
  end(link, m);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, Stopped& m) {
  const Route* route = link->route(m);
  if (route == nullptr) return;
  checkpoints_.ended(m.trial);
  if (!link->preempts(*route) || !route->leaving) return end(link, m);
  Failed failed{m.trial, m.attempt, {.source = FailureSource::preemption, .text = goes_away(*link)}, m.member};
  end(link, failed);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, Failed& m) {
  const Route* route = link->route(m);
  if (route == nullptr) return;
  if (link->preempts(*route)) {
    // A machine that shuts down also ends its processes, so the reported cause is not meaningful.
    const bool own = std::exchange(m.cause.source, FailureSource::preemption) == FailureSource::user;
    m.cause.text = own ? hypertune::detail::format("{} ({})", goes_away(*link), m.cause.text) : goes_away(*link);
  }
  if (options_.memory_used_up && m.cause.text.starts_with(detail::memory_was_used_up))
    if (const auto more = options_.memory_used_up(link->spec.name); !more.empty()) {
      m.cause.source = FailureSource::preemption;
      m.cause.text = hypertune::detail::format("{} ({})", more, m.cause.text);
      return end_with_more_memory(link, m, detail::steady_now() + max_for_memory);
    }
  end(link, m);
}
// A trial that began anew at once would be killed again.
void RemoteExecutor::State::end_with_more_memory(const LinkPointer& link, const Failed& failed, Seconds until) {
  if (link->route(failed) == nullptr) return;  // the host is lost
  if (!options_.gets_memory || !options_.gets_memory(link->spec.name) || detail::steady_now() > until) {
    Failed m = failed;
    return end(link, m);
  }
  constexpr std::chrono::milliseconds again{100};
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, again);
  timer->async_wait([this, link, failed, until, timer](const boost::system::error_code& error) {
    if (!error) end_with_more_memory(link, failed, until);
  });
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, SaveFailed& m) {
  if (!link->has(m.trial)) return;
  m.why = hypertune::detail::format("{}: {}", hypertune::detail::host_text(link->spec.name), m.why);
  emit(std::move(m));
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, GroupMessage& m) {
  if (link->route(m) != nullptr) emit(std::move(m));
}
void RemoteExecutor::State::on(const LinkPointer&, const ConnectionPointer&, Notice& m) { emit(std::move(m)); }
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, wire::LogPiece& m) {
  if (link->route(m) != nullptr) append_log(m);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, wire::Usage& m) {
  link->account.cpu = m.cpu;
  link->account.memory = m.memory;
  link->account.gpus = m.gpus;
  publish(*link);
}
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer&, wire::Draining& m) {
  drain(link, m.why, m.seconds, false);
}
// Messages about checkpoints or streams; all others are invalid from an agent.
template <class M>
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer& connection, M& m) {
  if constexpr (requires { checkpoints_.on(link, connection, m); })
    checkpoints_.on(link, connection, m);
  else if constexpr (requires { connection->tunnel->on(m); })
    connection->tunnel->on(m);
  else
    fail(Errc::protocol, "the agent sent a message that only a driver sends");
}

template <class E>
void RemoteExecutor::State::end(const LinkPointer& link, E& event) {
  erase(link, RunKey(event.trial, event.member));
  if (!options_.reuse) retire_host(link);
  emit(std::move(event));
  leave_if_empty(link);
}

void RemoteExecutor::State::receive(const LinkPointer& link, const ConnectionPointer& connection,
                                    wire::Message message) {
  std::visit([&](auto& m) { on(link, connection, m); }, message);
}

void RemoteExecutor::State::append_log(const wire::LogPiece& piece) {
  try {
    const auto folder = start_.directory / "trials" / std::to_string(piece.trial);
    if (!std::filesystem::exists(start_.directory)) fail(Errc::io, "'{}' is gone", start_.directory.string());
    std::filesystem::create_directories(folder);
    if (!BoundedLog(folder / log_name(piece.member), start_.log_limit).write(piece.text))
      fail(Errc::io, "cannot write '{}'", (folder / log_name(piece.member)).string());
  } catch (const std::exception& e) {
    if (!std::exchange(log_failed_, true))
      emit(Notice{hypertune::detail::format("a trial's log is lost: {}", e.what())});
  }
}

}  // namespace hypertune::inline v0::remote
