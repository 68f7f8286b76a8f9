// RemoteExecutor: opening, watching and closing connections.
#include "executor_state.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/record/detail/host_faults.hpp>
#include <hypertune/remote/detail/printed.hpp>

#include <sys/resource.h>

namespace hypertune::inline v0::remote {
namespace {

// Raises the limit of open files if needed: each host needs several descriptors, and many systems allow 1,024 by
// default. Returns how many hosts there is room for.
std::size_t raise_descriptor_limit(std::size_t hosts) {
  constexpr rlim_t each = 6, others = 256;  // three for a stream, three for its carrier
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return hosts;
  const rlim_t wanted = others + each * hosts;
  if (limit.rlim_cur < wanted) {
    const rlim_t before = std::exchange(limit.rlim_cur, std::min(wanted, limit.rlim_max));
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return limit.rlim_cur >= wanted ? hosts : limit.rlim_cur < others ? 0 : (limit.rlim_cur - others) / each;
}

}  // namespace

std::string kind_of_problem(const std::string& why) {
  return fault_key({.source = FailureSource::infrastructure, .text = why});
}

void RemoteExecutor::State::begin() {
  if (thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    published_.clear();
    hosts_.clear();
    usable_ = tried_ = 0;
  }
  work_.emplace(io_.get_executor());
  dials_.emplace(static_cast<std::size_t>(options_.dials));
  ends_.emplace(16);
  checkpoints_.begin(*ends_);
  {
    const hypertune::detail::SignalBlock block;
    thread_ = std::thread([this] {
      hypertune::detail::run_handlers(io_, [this](const std::string& why) {
        fail_run("the connections to hosts cannot go on: " + why, Errc::experiment);
      });
    });
  }
  pool_.on_change([this] { look_soon(); });
  look_soon();
}

// May be called from any thread. Hosts that are added in quick succession are handled together.
void RemoteExecutor::State::look_soon() {
  if (!look_pending_.exchange(true)) detail::asio::post(io_, [this] { look_at_pool(); });
}

// Connects to new hosts of the pool; asks removed ones to leave.
void RemoteExecutor::State::look_at_pool() {
  look_pending_ = false;
  if (closing()) return;
  auto wanted = pool_.hosts();
  const bool first = links_.empty();
  const std::size_t room = raise_descriptor_limit(wanted.size());
  if (room < wanted.size() && !std::exchange(limit_reported_, true)) {
    Notice notice{hypertune::detail::format(
        "this program may open files for about {} hosts of {}: raise the limit (ulimit -n) to use them all", room,
        wanted.size())};
    if (active_)
      emit(std::move(notice));
    else
      early_.push_back(std::move(notice));
  }
  std::unordered_map<std::string, RemoteHost*> by_name;
  for (auto& host : wanted) by_name[host.name] = &host;
  for (const auto& link : links_) {
    const auto found = by_name.find(link->spec.name);
    if (found == by_name.end()) {
      const auto why = pool_.why_removed(link->spec.name);
      if (link->machine.state() != HostState::gone)
        drain(link, why.empty() ? "it has been taken from the list of hosts" : why, 0, true);
      continue;
    }
    link->spec.dialer = std::move(found->second->dialer);
    by_name.erase(found);
    step(link, [&](HostStateMachine& m) { return m.restored(detail::steady_now()); });
  }
  for (auto& host : wanted) {
    if (!by_name.contains(host.name)) continue;
    const auto link = std::make_shared<Link>(io_, std::move(host), options_.timeouts);
    link->account.name = link->host.name = link->spec.name;
    link->host.slots = options_.reuse ? 0 : 1;
    link->position = links_.size();
    links_.push_back(link);
    if (first || !started_) {
      number(link);
      link->host.total = {.cpus = 0};
    }
    step(link, [&](HostStateMachine& m) { return m.start(detail::steady_now()); });
  }
  const auto explanations = pool_.take_explanations(), refusals = pool_.take_refusals();
  const auto notices = pool_.take_notices();
  const auto without_room = pool_.without_room();
  for (const auto& link : links_) {
    if (const auto found = notices.find(link->spec.name); found != notices.end())
      drain(link, found->second.why, found->second.seconds, false);
    if (const auto found = explanations.find(link->spec.name); found != explanations.end()) {
      link->wait_explained = true;
      step(link, [&](HostStateMachine& m) { return m.waiting(found->second); });
    }
    if (const auto found = refusals.find(link->spec.name); found != refusals.end())
      step(link, [&](HostStateMachine& m) { return m.refuse(found->second, detail::steady_now()); });
    link->without_room = without_room.contains(link->spec.name);
  }
  check_all_refused();
}

// Hosts are numbered in the order in which the Tuner learns of them.
void RemoteExecutor::State::number(const LinkPointer& link) {
  link->index = static_cast<int>(by_index_.size());
  by_index_.push_back(link);
}

void RemoteExecutor::State::step(const LinkPointer& link, const std::function<HostActions(HostStateMachine&)>& change) {
  const bool was_draining = link->machine.draining();
  const HostState before = link->machine.state();
  const HostActions actions = change(link->machine);
  if (actions.close || actions.lost) {
    close(link, was_draining && !actions.lost ? 5 : 0);
    for (auto& [trial, route] : link->routes)
      if (route.parked && route.lost.empty()) route.lost = link->machine.problem();
  }
  if (actions.lost && !options_.reuse && !link->routes.empty()) retire_host(link);
  if (actions.gained) link->up_since = detail::steady_now();
  if (actions.lost) ++link->account.losses;
  if (actions.gained || actions.unusable || link->machine.state() != before) publish(*link);
  if (actions.gained || actions.unusable) {
    check_all_refused();
    announce(link);
  }
  if (actions.lost) fail_all(link, was_draining);
  if (actions.connect) {
    const std::uint64_t generation = ++link->generation;
    hypertune::detail::spawn(io_, connect(link, generation), [this, link, generation](const std::string& why) {
      if (link->generation == generation) give_up(link, why);
    });
  }
  arm(link);
}

void RemoteExecutor::State::arm(const LinkPointer& link) {
  const Seconds at = std::min(link->machine.deadline(), link->save_by);
  if (closing() || std::isinf(at)) {
    link->timer.cancel();
    return;
  }
  const double grid = std::min(0.05, options_.timeouts.heartbeat / 50);
  const Seconds now = detail::steady_now();
  link->timer.expires_after(hypertune::detail::as_duration(
      detail::on_grid(now + std::clamp(at - now, 0.0, 3600.0) + grid, grid) - now + 0.001));
  link->timer.async_wait([this, link](boost::system::error_code error) {
    if (!error && !closing()) tick(link);
  });
}

void RemoteExecutor::State::tick(const LinkPointer& link) {
  if (detail::steady_now() >= link->save_by) {
    link->save_by = std::numeric_limits<double>::infinity();
    if (link->machine.draining())
      for (auto& [run, route] : link->routes) ask_to_leave(link, run, route);
  }
  std::string said;
  if (const auto& connection = link->connection; connection && !connection->greeted)
    said = detail::last_line(connection->errors.empty() ? connection->channel->preamble() : connection->errors);
  step(link, [&](HostStateMachine& m) { return m.tick(detail::steady_now(), said); });
}

// dial() may block, so it runs on another thread.
detail::asio::awaitable<void> RemoteExecutor::State::connect(LinkPointer link, std::uint64_t generation) {
  struct Result {
    AgentStream stream;
    std::string error;
    FailureClass failure = FailureClass::unknown;
  };
  const auto result = std::make_shared<Result>();
  const auto done = std::make_shared<detail::Wakeup>(io_);
  const auto job = [this, result, done, dialer = link->spec.dialer, stop = stop_dialing_.get_token()] {
    try {
      if (!closing()) result->stream = dialer.dial(stop);
    } catch (const DialError& e) {
      result->error = e.what();
      result->failure = e.failure();
    } catch (const std::exception& e) {
      result->error = e.what();
      const auto* known = dynamic_cast<const Error*>(&e);
      if (known != nullptr && known->code() == Errc::usage) result->failure = FailureClass::permanent;
    }
    if (result->error.empty() && !(result->stream.to && result->stream.from && result->stream.err))
      result->error = "no stream to it was opened";
    detail::asio::post(io_, [done] { done->raise(); });
  };
  hypertune::detail::run_apart(*dials_, job);
  co_await done->wait();
  if (closing() || link->generation != generation || link->machine.state() != HostState::connecting) {
    hypertune::detail::run_apart(*ends_, [result] { result->stream.carrier.end(); });
    co_return;
  }
  if (result->error.empty())
    open(link, std::move(result->stream));
  else
    step(link, [&](HostStateMachine& m) { return m.ended(result->error, detail::steady_now(), result->failure); });
}

void RemoteExecutor::State::open(const LinkPointer& link, AgentStream stream) {
  const auto connection = std::make_shared<Connection>(io_);
  connection->carrier = std::move(stream.carrier);
  try {
    connection->err.assign(detail::duplicate_of(stream.err));
    connection->channel = std::make_shared<detail::Channel>(io_, std::move(stream.from), std::move(stream.to), true);
    connection->tunnel = std::make_shared<detail::Tunnel>(io_, connection->channel, true);
    connection->pace = checkpoints_.new_pace();
  } catch (...) {
    hypertune::detail::run_apart(*ends_,
                                 [carrier = std::move(connection->carrier)]() mutable { carrier.end(); });  // it blocks
    throw;
  }
  link->connection = connection;
  ++link->account.incarnations;
  const std::weak_ptr<Connection> weak = connection;  // the connection owns the channel, which owns the handlers
  const auto failed = [this, link, weak](const std::string& why) {
    const auto here = weak.lock();
    if (here && !here->over) give_up(link, why);
  };
  connection->channel->open({.message =
                                 [this, link, weak](wire::Message message) {
                                   const auto here = weak.lock();
                                   if (here && !here->over) receive(link, here, std::move(message));
                                 },
                             .heard =
                                 [this, link, weak] {
                                   const auto here = weak.lock();
                                   if (!here || here->over) return;
                                   const bool doubted = link->machine.state() == HostState::suspect;
                                   link->machine.message_received(detail::steady_now());
                                   if (doubted) publish(*link);
                                 },
                             .piece = [this, weak]() -> std::optional<wire::Message> {
                               const auto here = weak.lock();
                               if (!here || here->over) return std::nullopt;
                               return here->tunnel->next_in_turn([&] { return checkpoints_.next_whole(here); });
                             },
                             .ended =
                                 [this, link, weak, failed](const std::string& why) {
                                   const auto here = weak.lock();
                                   if (!here || here->over || closing()) return;
                                   hypertune::detail::spawn(io_, retire(link, here, why), failed);
                                 }});
  hypertune::detail::spawn(io_, read_errors(connection), failed);
  step(link, [](HostStateMachine& m) {
    m.opened(detail::steady_now());
    return HostActions{};
  });
}

detail::asio::awaitable<void> RemoteExecutor::State::read_errors(ConnectionPointer connection) {
  constexpr std::size_t max_errors = 4096;
  std::array<char, 1024> bytes;
  for (;;) {
    boost::system::error_code error;
    const std::size_t n = co_await connection->err.async_read_some(
        detail::asio::buffer(bytes), detail::asio::redirect_error(detail::asio::use_awaitable, error));
    if (error) break;
    connection->errors.append(bytes.data(), n);
    if (connection->errors.size() > max_errors) connection->errors.erase(0, connection->errors.size() - max_errors);
  }
  connection->err_over = true;
  connection->err_ended.raise();
}

// The stream has ended by itself. The standard error may give the reason shortly after.
detail::asio::awaitable<void> RemoteExecutor::State::retire(LinkPointer link, ConnectionPointer connection,
                                                            std::string why) {
  if (!connection->greeted && connection->refusal.empty() && !connection->err_over)
    co_await connection->err_ended.wait(0.3);
  if (connection->over || closing()) co_return;
  FailureClass failure = connection->greeted ? FailureClass::transient : FailureClass::unknown;
  if (!connection->refusal.empty()) {
    why = connection->refusal;
    failure = connection->failure;
  } else if (!connection->greeted) {
    std::string said = link->spec.dialer.explain(connection->errors);
    if (said.empty() && why == detail::Channel::closed_by_peer)
      said = detail::last_line(connection->channel->preamble());
    if (!said.empty()) why = said;
    failure = link->spec.dialer.classify(connection->errors);
  }
  step(link, [&](HostStateMachine& m) { return m.ended(why, detail::steady_now(), failure); });
  close(link, 0);
}

// Something on this side has failed that the host needs: it is lost for that reason, and tried again.
void RemoteExecutor::State::give_up(const LinkPointer& link, const std::string& why) {
  if (closing()) return;
  step(link, [&](HostStateMachine& m) { return m.ended(why, detail::steady_now()); });
  close(link, 0);
}

// Closes the connection; its data is ignored from here on.
void RemoteExecutor::State::close(const LinkPointer& link, double grace) {
  const auto connection = std::exchange(link->connection, nullptr);
  ++link->generation;
  if (!connection) return;
  connection->over = true;
  if (grace > 0) {
    connection->channel->send(wire::Shutdown{closing() || link->machine.state() == HostState::gone});
    connection->channel->close_when_sent();
  } else {
    connection->channel->close();
  }
  boost::system::error_code ignored;
  connection->err.close(ignored);
  checkpoints_.close(connection);
  connection->tunnel->close();
  if (connection->greeted) link->account.seconds += detail::steady_now() - link->up_since;
  ++ending_;
  hypertune::detail::run_apart(*ends_, [this, carrier = std::move(connection->carrier), grace]() mutable {
    carrier.end(grace);
    --ending_;
  });
}

void RemoteExecutor::State::send_begin(const LinkPointer& link) {
  const auto& connection = link->connection;
  if (!started_ || !connection || !connection->greeted || std::exchange(connection->begun, true)) return;
  wire::Begin begin;
  begin.experiment = experiment_;
  begin.incarnation = (epoch_ << 32U) + ++serial_;
  begin.hang_timeout = start_.hang_timeout;
  begin.log_limit = start_.log_limit;
  begin.program = options_.program;
  begin.notice_command = options_.notice_command;
  begin.notice_url = options_.notice_url;
  begin.notice_interval = options_.notice_interval;
  checkpoints_.introduce(link, begin);
  connection->channel->send(begin);
}

// Tells the Tuner whether trials can be placed on the host, if that has changed.
void RemoteExecutor::State::announce(const LinkPointer& link) {
  if (!active_) return;
  if (link->machine.usable()) {
    if (link->index < 0) {  // a new host
      number(link);
      publish(*link);
    }
    emit(HostGained{link->index, link->host});
  } else if (link->index >= 0) {
    // A refused host is lost for good, unless no other host is usable: then the run ends, and no trial is to blame.
    const bool refused = link->machine.refused() && std::any_of(links_.begin(), links_.end(), [](const auto& other) {
                           return other->machine.usable();
                         });
    emit(HostLost{link->index, link->machine.problem(), refused || link->machine.state() == HostState::gone,
                  link->machine.leaving(), link->wait_explained && link->machine.state() == HostState::connecting});
    if (!options_.interchangeable || !link->machine.leaving()) say_why(link);
  } else if (link->tried && link->machine.state() != HostState::gone) {
    say_why(link);  // a host that has joined but was never reached is unknown to the Tuner, but the user waits for it
  }
}

// Reports each reason once, and not again at each failing attempt in a row.
void RemoteExecutor::State::say_why(const LinkPointer& link) {
  const auto& machine = link->machine;
  if (link->wait_explained && machine.state() == HostState::connecting) return;
  const auto& why = machine.problem();
  const bool drained = std::exchange(link->reported_drain, machine.draining());
  if (link->reported_reason == why && (machine.failures() != 1 || drained)) return;
  // Among interchangeable hosts that have never been connected, the same problem is reported once. Names are ignored.
  const auto kind = options_.interchangeable ? kind_of_problem(why) : std::string();
  const bool known = options_.interchangeable && link->up_since == 0 &&
                     std::any_of(links_.begin(), links_.end(), [&](const auto& other) {
                       return !other->reported_reason.empty() && !other->machine.up() && other->reported_kind == kind;
                     });
  link->reported_reason = why;
  link->reported_kind = kind;
  if (known) return;
  emit(Notice{hypertune::detail::format("{} is not used: {}", hypertune::detail::host_text(link->spec.name),
                                        machine.reason())});
}

void RemoteExecutor::State::fail_all(const LinkPointer& link, bool preempted) {
  const auto routes = std::exchange(link->routes, {});
  const Cause cause{.source = preempted ? FailureSource::preemption : FailureSource::infrastructure,
                    .text = hypertune::detail::format("{} was lost: {}", hypertune::detail::host_text(link->spec.name),
                                                      link->machine.problem())};
  std::map<std::pair<TrialId, Attempt>, std::vector<int>> of_groups;  // members of a group are lost together
  for (const auto& [run, route] : routes) {
    if (route.parked) {
      link->routes[run] = route;
      continue;
    }
    by_run_.erase(run);
    if (route.seated)
      of_groups[{run.first, route.attempt}].push_back(run.second);
    else
      emit(Failed{run.first, route.attempt, cause});
  }
  for (auto& [attempt, members] : of_groups) groups_.on_loss(attempt.first, attempt.second, std::move(members), cause);
  groups_.work();
  link->save_by = std::numeric_limits<double>::infinity();
}

}  // namespace hypertune::inline v0::remote
