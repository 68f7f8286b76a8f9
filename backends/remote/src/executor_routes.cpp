// RemoteExecutor: commands to the hosts, their events and checkpoints back.
#include "executor_state.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/execute/bounded_log.hpp>

#include <fstream>
#include <random>

namespace hypertune::remote {
namespace {

// What names this experiment on its hosts, and how often it has been taken up; kept beside its record.
std::pair<std::string, std::uint64_t> next_epoch(const std::filesystem::path& directory) {
  const auto path = directory / "remote";
  std::string id;
  std::uint64_t epoch = 0;
  {
    std::ifstream in(path);
    in >> id >> epoch;
  }
  if (id.size() != 16 || id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    std::random_device device;
    id = hypertune::detail::format("{:08x}{:08x}", device(), device());
  }
  ++epoch;
  std::filesystem::create_directories(directory);
  const auto aside = directory / ".remote.new";
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);
  hypertune::detail::write_new_file(aside, hypertune::detail::format("{} {}\n", id, epoch));
  std::filesystem::rename(aside, path);
  return {id, epoch};
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
    shared_ = std::move(folder);
    started_ = true;
    store_.emplace(start_.directory, LocalCheckpointStore::Options{.make_root = false});
    experiment_ = id;
    epoch_ = epoch;
    if (detail::can_exchange && options_.transfer.by_content) try {
        token_ = detail::CheckpointExchange::new_token();
        exchange_.emplace(*store_, token_, rate_);
      } catch (const std::exception& e) {
        emit(Notice{hypertune::detail::format("checkpoints go whole between hosts: {}", e.what())});
      }
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
  }
  {
    const std::lock_guard guard(mutex_);
    if (!hopeless_.empty()) fail(Errc::resources, "{}", hopeless_);
  }
  bell_.wait_for(deadline - run_clock());
}

void RemoteExecutor::State::drain_queue() {
  std::vector<Command> commands;
  {
    const std::lock_guard guard(mutex_);
    commands.swap(queue_);
    woken_ = false;
  }
  if (closing_) return;
  if (!std::exchange(active_, true)) {  // the Tuner is ready for events: it has spoken first
    for (const auto& link : links_) announce(link);
    for (auto& notice : std::exchange(early_, {})) emit(std::move(notice));
  }
  for (auto& command : commands) std::visit([this](auto& m) { carry_out(m); }, command);
}

void RemoteExecutor::State::emit(Event event) {
  if (closing_ || !start_.sink) return;
  if (active_)
    start_.sink(std::move(event));
  else if (auto* notice = std::get_if<Notice>(&event))
    early_.push_back(std::move(*notice));
}

RemoteExecutor::State::LinkPointer RemoteExecutor::State::link_of(TrialId trial) const {
  const auto found = by_trial_.find(trial);
  return found == by_trial_.end() ? nullptr : found->second;
}
RemoteExecutor::State::Route* RemoteExecutor::State::route_of(const LinkPointer& link, TrialId trial, Attempt attempt) {
  if (!link) return nullptr;
  const auto found = link->routes.find(trial);
  return found != link->routes.end() && found->second.attempt == attempt ? &found->second : nullptr;
}
void RemoteExecutor::State::erase(const LinkPointer& link, TrialId trial) {
  link->routes.erase(trial);
  by_trial_.erase(trial);
}

// ---- Commands ----

void RemoteExecutor::State::carry_out(Launch& m) {
  const auto refuse = [&](const std::string& why, Blame blame = Blame::infrastructure) {
    emit(Failed{m.trial, m.attempt, Cause{.blame = blame, .text = why}});
  };
  if (m.parked) {
    const auto link = link_of(m.trial);
    Route* route = route_of(link, m.trial, m.attempt);
    if (route == nullptr) return refuse("while it was paused: its process is gone");
    if (!route->parked || !route->lost.empty()) {
      const std::string why =
          hypertune::detail::format("while it was paused: host '{}' was lost: {}", link->spec.name, route->lost);
      erase(link, m.trial);
      return refuse(why, Blame::preemption);  // not its own failure, nor that of the host where it is to go on
    }
    route->parked = route->waiting = false;
    if (m.slot.host != link->index) m.slot.cpus.clear();  // the numbers of another host's cores
    link->connection->channel->send(m);
    return;
  }
  if (const auto old = link_of(m.trial)) erase(old, m.trial);
  LinkPointer link;
  for (const auto& candidate : links_)
    if (candidate->index == m.slot.host) link = candidate;
  if (!link) return refuse("there is no such host");
  if (!link->machine.usable()) {
    const bool preempted = link->machine.draining() || link->machine.state() == HostState::gone;
    return refuse(hypertune::detail::format("host '{}' was lost: {}", link->spec.name, link->machine.reason()),
                  preempted ? Blame::preemption : Blame::infrastructure);
  }
  if (shared_) detail::asio::post(*disk_, [this, trial = m.trial] { shared_->link(trial); });
  link->routes[m.trial] = Route{.attempt = m.attempt, .restore = m.restore};
  by_trial_[m.trial] = link;
  link->connection->channel->send(m);
}

void RemoteExecutor::State::carry_out(const Continue& m) {
  const auto link = link_of(m.trial);
  Route* route = route_of(link, m.trial, m.attempt);
  if (route == nullptr || route->parked || route->leaving) return;
  route->waiting = false;
  if (link->machine.draining()) return ask_to_leave(link, m.trial, *route);
  link->connection->channel->send(m);
}

void RemoteExecutor::State::carry_out(const Pause& m) {
  const auto link = link_of(m.trial);
  Route* route = route_of(link, m.trial, m.attempt);
  if (route == nullptr || route->parked || route->leaving) return;
  route->waiting = false;
  Pause pause = m;
  pause.save |= link->machine.draining();  // it will not be there to go on
  link->connection->channel->send(pause);
}

void RemoteExecutor::State::carry_out(const Stop& m) {
  const auto link = link_of(m.trial);
  Route* route = route_of(link, m.trial, m.attempt);
  if (route == nullptr) return;
  const bool parked = route->parked;
  route->stopping = true;
  if (link->machine.up() && link->connection) link->connection->channel->send(m);
  if (parked) {
    erase(link, m.trial);
    leave_if_empty(link);
  }
}

// ---- Events ----

void RemoteExecutor::State::receive(const LinkPointer& link, const ConnectionPointer& connection,
                                    wire::Message message) {
  std::visit([&](auto& m) { on(link, connection, m); }, message);
}

template <class M>
void RemoteExecutor::State::on(const LinkPointer& link, const ConnectionPointer& connection, M& m) {
  const auto route_for = [&](const auto& e) { return route_of(link, e.trial, e.attempt); };
  if constexpr (std::same_as<M, wire::Hello>) {
    if (connection->greeted) fail(Errc::protocol, "a second Hello");
    wire::require_version(m.version, "agent");
    connection->greeted = true;
    connection->by_content = m.by_content;
    link->host.total = m.host.total;
    wire::Welcome welcome;
    welcome.host_name = link->spec.name;
    welcome.heartbeat = options_.timeouts.heartbeat();
    welcome.liveness = options_.timeouts.liveness;
    connection->channel->send(welcome);
    connection->channel->beat(welcome.heartbeat);
    send_begin(link);
    step(link, [](HostMachine& machine) { return machine.greeted(detail::steady_now()); });
  } else if constexpr (std::same_as<M, wire::Refusal>) {
    connection->refusal = m.why.empty() ? std::string("its agent refused") : m.why;
    connection->failure = m.permanent ? FailureClass::permanent : FailureClass::transient;
  } else if constexpr (std::same_as<M, Started>) {
    link->machine.proved();
    if (route_for(m) != nullptr) emit(m);
  } else if constexpr (std::same_as<M, Reported>) {
    Route* route = route_for(m);
    if (route == nullptr) return;
    route->waiting = !route->stopping && !route->leaving;
    emit(std::move(m));
  } else if constexpr (std::same_as<M, Paused>) {
    Route* route = route_for(m);
    if (route == nullptr) return;
    if (m.parked && link->machine.draining()) {
      connection->channel->send(Stop{m.trial, m.attempt, false});
      m.parked = false;
    }
    if (m.parked) {
      route->parked = true;
      emit(m);
    } else {
      end(link, m);
    }
  } else if constexpr (std::same_as<M, Finished> || std::same_as<M, Stopped> || std::same_as<M, Failed>) {
    if (route_for(m) != nullptr) end(link, m);
  } else if constexpr (std::same_as<M, SaveFailed>) {
    if (!link->routes.contains(m.trial)) return;
    m.why = hypertune::detail::format("host '{}': {}", link->spec.name, m.why);
    emit(std::move(m));
  } else if constexpr (std::same_as<M, Notice>) {
    emit(std::move(m));
  } else if constexpr (std::same_as<M, wire::LogPiece>) {
    if (route_for(m) != nullptr) append_log(m);
  } else if constexpr (std::same_as<M, wire::Usage>) {
    link->account.cpu = m.cpu;
    link->account.memory = m.memory;
    link->account.gpus = m.gpus;
    settle(*link);
  } else if constexpr (std::same_as<M, wire::Draining>) {
    drain(link, m.why, m.seconds, false);
  } else if constexpr (std::same_as<M, wire::Offer>) {
    if (route_of(link, m.info.trial, m.attempt) == nullptr) {
      connection->channel->send(wire::Taken{m.transfer, "its attempt is over"});
      return;
    }
    if (m.shared) {
      if (!connection->shares) fail(Errc::protocol, "a checkpoint in a shared folder, which was not agreed on");
      require_few(connection->taking, m.info.trial, [](const auto& each) -> auto& { return each; });
      return take_shared(link, connection, m);
    }
    if (m.by_content) {
      if (!connection->by_content) fail(Errc::protocol, "an offer by content, which was not agreed on");
      require_few(connection->offered, m.info.trial, [](const auto& each) -> auto& { return each; });
      connection->offered.push_back(std::move(m));
      fetch_next(link, connection);
      return;
    }
    require_few(connection->arriving, m.info.trial, [](const auto& each) -> auto& { return each.second->offer(); });
    const std::uint64_t transfer = m.transfer;
    const CheckpointInfo info = m.info;
    try {
      auto copy = std::make_shared<detail::IncomingCopy>(*store_, std::move(m));
      connection->arriving[transfer] = std::move(copy);
    } catch (const std::exception& e) { return lose(connection, transfer, info, e.what()); }
    complete(link, connection, transfer);
  } else if constexpr (std::same_as<M, wire::Piece>) {
    const auto found = connection->arriving.find(m.transfer);
    if (found == connection->arriving.end()) return;
    try {
      found->second->add(m.bytes);
    } catch (const std::exception& e) {
      const CheckpointInfo info = found->second->offer().info;
      connection->arriving.erase(found);
      return lose(connection, m.transfer, info, e.what());
    }
    complete(link, connection, m.transfer);
  } else if constexpr (std::same_as<M, wire::Unavailable>) {
    connection->arriving.erase(m.transfer);
    close_wish(connection, m.transfer);
  } else if constexpr (std::same_as<M, wire::Want>) {
    const auto found = link->routes.find(m.trial);
    Route* route = found == link->routes.end() ? nullptr : &found->second;
    const bool told =
        route != nullptr && std::find(route->restore.begin(), route->restore.end(), m.info) != route->restore.end();
    if (!told) return connection->channel->send(wire::Unavailable{m.transfer, "its trial is not to go on from that"});
    if (++route->wishes > most_wishes) fail(Errc::protocol, "too many wishes for checkpoints");
    send_copy(link, connection, m);
  } else if constexpr (std::same_as<M, wire::Proof>) {
    if (!shared_ || connection->area.empty()) fail(Errc::protocol, "a Proof that was not asked for");
    on_proof(link, connection, m);
  } else if constexpr (std::same_as<M, wire::Serving>) {
    if (options_.transfer.direct) connection->endpoint = m.endpoint;
  } else if constexpr (std::same_as<M, wire::Fetched>) {
    if (const auto wish = connection->wishes.find(m.transfer); wish != connection->wishes.end()) {
      const CheckpointInfo info = wish->second.info;
      note_without(info.digest, m.without);
      note_holder(connection, info);
      close_wish(connection, m.transfer);
      if (options_.transfer.direct && !content_ids_.contains(info.digest)) try {
          fetches_.run([this, info] { identify(info); });
        } catch (const std::exception&) {}  // then hosts have to trust each other
    }
    (m.direct ? link->account.direct : link->account.received) += m.moved;
    link->account.reused += m.reused;
    settle(*link);
  } else if constexpr (std::same_as<M, wire::StreamOpen> || std::same_as<M, wire::StreamPiece> ||
                       std::same_as<M, wire::StreamEnd>) {
    connection->tunnel->on(m);
  } else {
    fail(Errc::protocol, "the agent sent a message that only a driver sends");
  }
}

// An agent holds a trial back whose checkpoints are not taken as fast as it saves.
template <class Offers, class P>
void RemoteExecutor::State::require_few(const Offers& offers, TrialId trial, const P& offer_of) {
  const auto same =
      std::count_if(offers.begin(), offers.end(), [&](const auto& each) { return offer_of(each).info.trial == trial; });
  if (same >= most_offered) fail(Errc::protocol, "too many checkpoints at once of trial {}", trial);
}

template <class E>
void RemoteExecutor::State::end(const LinkPointer& link, E& event) {
  const TrialId trial = event.trial;
  const Attempt attempt = event.attempt;
  const Route route = link->routes.at(trial);
  erase(link, trial);
  const bool preempted = link->machine.draining() && !route.stopping;
  if constexpr (std::same_as<E, Stopped>) {
    if (preempted && route.leaving) {
      Cause cause{
          .blame = Blame::preemption,
          .text = hypertune::detail::format("host '{}' goes away: {}", link->spec.name, link->machine.reason())};
      emit(Failed{trial, attempt, std::move(cause)});
    } else {
      emit(event);
    }
  } else if constexpr (std::same_as<E, Failed>) {
    if (preempted) event.cause.blame = Blame::preemption;  // a machine that shuts down ends its processes, too
    emit(std::move(event));
  } else {
    emit(event);
  }
  leave_if_empty(link);
  if constexpr (std::same_as<E, Finished> || std::same_as<E, Stopped>)
    if (exchange_) detail::asio::post(*disk_, [this, trial] { exchange_->drop_partial(trial); });
}

// ---- Checkpoints ----

std::optional<wire::Piece> RemoteExecutor::State::next_whole(const ConnectionPointer& connection) {
  while (!connection->sending.empty() && connection->pace->ready(connection->channel)) {
    auto copy = std::move(connection->sending.front());
    connection->sending.pop_front();
    try {
      if (auto piece = copy->next(connection->pace->longest())) {
        connection->pace->goes(piece->bytes.size());
        connection->sending.push_back(std::move(copy));
        return piece;
      }
    } catch (const std::exception& e) {
      connection->channel->send(wire::Unavailable{copy->offer().transfer, e.what()});
    }
  }
  return std::nullopt;
}

// A checkpoint counts once it is sealed here.
void RemoteExecutor::State::complete(const LinkPointer& link, const ConnectionPointer& connection,
                                     std::uint64_t transfer) {
  const auto copy = connection->arriving.at(transfer);
  if (!copy->complete()) return;
  connection->arriving.erase(transfer);
  detail::asio::post(*disk_, [this, link, connection, copy] {
    std::optional<CheckpointInfo> sealed;
    std::string error;
    try {
      sealed = copy->seal();
    } catch (const std::exception& e) { error = e.what(); }
    detail::asio::post(io_, [this, link, connection, copy, sealed, error] {
      if (closing_) return;  // a resumed experiment finds it
      if (sealed) {
        link->account.sent += sealed->bytes;
        settle(*link);
      }
      take(link, connection, copy->offer(), sealed, error);
    });
  });
}

void RemoteExecutor::State::take(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer,
                                 const std::optional<CheckpointInfo>& sealed, const std::string& error) {
  const bool counts = !connection->over && route_of(link, offer.info.trial, offer.attempt) != nullptr;
  if (sealed && !counts) {
    const bool mine = fetching_.insert(sealed->trial).second;  // its like would be found here before it is gone
    detail::asio::post(*disk_, [this, store = *store_, info = *sealed, mine]() mutable {
      try {
        store.drop(info);
      } catch (const std::exception&) {}
      if (mine)
        detail::asio::post(io_, [this, trial = info.trial] {
          fetching_.erase(trial);
          fetch_all();
        });
    });
    return;
  }
  if (!counts) return;
  if (!sealed) return lose(connection, offer.transfer, offer.info, error);
  if (!offer.shared) { note_holder(connection, *sealed); }
  emit(Checkpointed{offer.info.trial, offer.attempt, *sealed});
  connection->channel->send(wire::Taken{offer.transfer, error});
}
// The driver could not take a checkpoint: host and Tuner are told.
void RemoteExecutor::State::lose(const ConnectionPointer& connection, std::uint64_t transfer,
                                 const CheckpointInfo& info, const std::string& why) {
  emit(SaveFailed{info.trial, info.steps, why});
  connection->channel->send(wire::Taken{transfer, why});
}

// Whether a host has the folder that is said to be shared, the disk is asked: what may take some time.
void RemoteExecutor::State::on_proof(const LinkPointer& link, const ConnectionPointer& connection,
                                     const wire::Proof& proof) {
  detail::asio::post(*ends_, [this, link, connection, proof, area = connection->area] {
    std::string why = proof.error;
    try {
      if (why.empty()) shared_->check(area, {proof.read, proof.wrote});
    } catch (const std::exception& e) { why = e.what(); }
    detail::asio::post(io_, [this, link, connection, why] {
      if (connection->over || closing_) return;
      connection->shares = why.empty();
      connection->channel->send(wire::Share{connection->shares});
      if (!connection->shares && !std::exchange(link->told_apart, true))
        emit(Notice{hypertune::detail::format(
            "host '{}' does not share the folder of checkpoints, which are copied from and to it: {}", link->spec.name,
            why)});
    });
  });
}

void RemoteExecutor::State::take_shared(const LinkPointer& link, const ConnectionPointer& connection,
                                        const wire::Offer& offer) {
  connection->taking.push_back(offer);
  detail::asio::post(*disk_, [this, link, connection, offer, area = connection->area] {
    std::optional<CheckpointInfo> sealed;
    std::string error;
    try {
      sealed = shared_->take(area, offer.transfer, offer.info, *store_);
    } catch (const std::exception& e) { error = e.what(); }
    detail::asio::post(io_, [this, link, connection, offer, sealed, error] {
      if (closing_) return;            // a resumed experiment finds it
      connection->taking.pop_front();  // they are taken in turn
      if (sealed) {
        link->account.shared += sealed->bytes;
        settle(*link);
      }
      take(link, connection, offer, sealed, error);
    });
  });
}

// Begins what can begin of what a host offers by content: a few at once of each, so that none waits for the links of
// others; of a trial one after the other, as each has much in common with the one before.
void RemoteExecutor::State::fetch_next(const LinkPointer& link, const ConnectionPointer& connection) {
  auto& offered = connection->offered;
  if (closing_) return;
  for (auto next = offered.begin(); next != offered.end() && connection->fetching < fetches_at_once;) {
    if (!fetching_.insert(next->info.trial).second) {
      ++next;
      continue;
    }
    const wire::Offer offer = std::move(*next);
    next = offered.erase(next);
    ++connection->fetching;
    const auto outcome = std::make_shared<detail::FetchOutcome>();
    auto done = [this, link, connection, offer, outcome] { fetched(link, connection, offer, *outcome); };
    auto job = [this, offer, outcome, done, name = "host '" + link->spec.name + "'", tunnel = connection->tunnel,
                stop = connection->stop.get_token(), store = *store_]() mutable {
      std::optional<CheckpointInfo> here;
      try {
        auto report = exchange_->fetch(tunnel, name, offer.info, stop);
        // Another checkpoint of the same content is a checkpoint of its own: each is dropped by itself.
        if (report.was_here) report.checkpoint = detail::duplicate(store, report.checkpoint);
        here = report.checkpoint;
        outcome->report = std::move(report);
      } catch (const std::exception& e) { outcome->error = e.what(); }
      detail::asio::post(io_, std::move(done));  // what it holds goes where it is used
      if (here && options_.transfer.direct) identify(*here);
    };
    try {
      fetches_.run(std::move(job));
    } catch (const std::exception& e) {
      outcome->error = e.what();
      detail::asio::post(io_, done);
    }
  }
}

void RemoteExecutor::State::fetch_all() {
  for (const auto& link : links_)
    if (link->connection) fetch_next(link, link->connection);
}

void RemoteExecutor::State::fetched(const LinkPointer& link, const ConnectionPointer& connection,
                                    const wire::Offer& offer, const detail::FetchOutcome& outcome) {
  --connection->fetching;
  fetching_.erase(offer.info.trial);
  if (closing_) return;  // a resumed experiment finds it
  const auto& report = outcome.report;
  if (report) {
    link->account.sent += report->bytes_moved + report->bytes_overhead;
    link->account.reused += report->bytes_reused;
    settle(*link);
  }
  take(link, connection, offer, report ? std::optional(report->checkpoint) : std::nullopt, outcome.error);
  fetch_all();
}

// Other hosts need not trust the one that they get a checkpoint from: they learn what names its content. On a thread
// that may block.
void RemoteExecutor::State::identify(const CheckpointInfo& info) {
  try {
    const std::string id = exchange_->content_id(info, stop_identifying_.get_token());
    detail::asio::post(io_, [this, digest = info.digest, id] {
      if (content_ids_.size() >= most_known) content_ids_.erase(content_ids_.begin());
      content_ids_[digest] = id;
    });
  } catch (const std::exception&) {}  // it has been dropped since, or the run ends
}

// It has made the checkpoint, or fetched it: others may get it there.
void RemoteExecutor::State::note_holder(const ConnectionPointer& connection, const CheckpointInfo& info) {
  auto& holds = connection->holds;
  if (std::find(holds.begin(), holds.end(), info.digest) != holds.end()) return;
  holds.push_back(info.digest);
  if (holds.size() > most_held) holds.pop_front();
}

// These did not give it: they have dropped it, or theirs is damaged.
void RemoteExecutor::State::note_without(const std::string& digest, const std::vector<std::string>& endpoints) {
  for (const auto& other : links_) {
    if (!other->connection) continue;
    if (std::find(endpoints.begin(), endpoints.end(), other->connection->endpoint) == endpoints.end()) continue;
    std::erase(other->connection->holds, digest);
  }
}

// Other hosts that have it, where these may be asked; who gives to the fewest comes first.
wire::Source RemoteExecutor::State::source_of(const LinkPointer& link, const ConnectionPointer& connection,
                                              const wire::Want& wanted) {
  wire::Source source{.transfer = wanted.transfer};
  std::vector<ConnectionPointer> holders;
  for (const auto& other : links_) {
    if (other == link || !other->connection || !other->machine.up() || other->connection->endpoint.empty()) continue;
    const auto& holds = other->connection->holds;
    if (std::find(holds.begin(), holds.end(), wanted.info.digest) == holds.end()) continue;
    holders.insert(std::upper_bound(holders.begin(), holders.end(), other->connection,
                                    [](const auto& a, const auto& b) { return a->giving < b->giving; }),
                   other->connection);
  }
  if (holders.empty()) return source;
  for (const auto& holder : holders) source.peers.push_back(holder->endpoint);
  if (const auto id = content_ids_.find(wanted.info.digest); id != content_ids_.end()) source.content_id = id->second;
  ++holders.front()->giving;
  connection->wishes[wanted.transfer].giver = holders.front();
  return source;
}

void RemoteExecutor::State::close_wish(const ConnectionPointer& connection, std::uint64_t transfer) {
  const auto node = connection->wishes.extract(transfer);
  if (!node) return;
  if (const auto giver = node.mapped().giver.lock()) --giver->giving;
}

void RemoteExecutor::State::send_copy(const LinkPointer& link, const ConnectionPointer& connection,
                                      const wire::Want& wanted) {
  const bool by_content = connection->by_content && wanted.info.bytes > options_.transfer.whole;
  if (by_content) connection->wishes[wanted.transfer].info = wanted.info;
  note_without(wanted.info.digest, wanted.without);
  if (by_content && !wanted.from_driver) {
    const auto source = source_of(link, connection, wanted);
    if (!source.peers.empty()) return connection->channel->send(source);
  }
  detail::asio::post(*disk_, [this, link, connection, wanted, by_content] {
    std::string error;
    bool corrupt = false;
    try {
      store_->open(wanted.info);
    } catch (const Error& e) {
      error = e.what();
      corrupt = e.code() == Errc::corrupt;
      if (corrupt) {
        try {
          store_->set_aside(wanted.info);
        } catch (const std::exception&) {}
      }
    } catch (const std::exception& e) { error = e.what(); }
    detail::asio::post(io_, [this, link, connection, wanted, by_content, error, corrupt] {
      if (connection->over || closing_) return;
      std::string why = error;
      if (why.empty() && by_content) return connection->channel->send(wire::Source{.transfer = wanted.transfer});
      if (why.empty()) {
        try {
          auto copy = std::make_unique<detail::OutgoingCopy>(*store_, wanted.info, wanted.transfer, 0);
          connection->channel->send(copy->offer());
          connection->sending.push_back(std::move(copy));
          connection->channel->poke();
          return;
        } catch (const std::exception& e) { why = e.what(); }
      }
      if (corrupt && link->routes.contains(wanted.trial)) emit(CheckpointLost{wanted.trial, wanted.info, why});
      connection->channel->send(wire::Unavailable{wanted.transfer, why, corrupt});
    });
  });
}

void RemoteExecutor::State::append_log(const wire::LogPiece& piece) {
  try {
    const auto folder = start_.directory / "trials" / std::to_string(piece.trial);
    if (!std::filesystem::exists(start_.directory)) fail(Errc::io, "'{}' is gone", start_.directory.string());
    std::filesystem::create_directories(folder);
    if (!BoundedLog(folder / "log", start_.log_limit).write(piece.text))
      fail(Errc::io, "cannot write '{}'", (folder / "log").string());
  } catch (const std::exception& e) {
    if (!std::exchange(log_failed_, true))
      emit(Notice{hypertune::detail::format("a trial's log is lost: {}", e.what())});
  }
}

}  // namespace hypertune::remote
