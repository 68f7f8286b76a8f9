// DriverCheckpoints: taking checkpoints from hosts.
#include "driver_checkpoints.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/net/spawn.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace hypertune::inline v0::remote::detail {

void DriverCheckpoints::start(const std::filesystem::path& directory, std::optional<SharedFolder> folder) {
  shared_ = std::move(folder);
  store_.emplace(directory, LocalCheckpointStore::Options{.make_root = false});
  if (can_exchange && executor_.options.by_content) try {
      token_ = CheckpointExchange::new_token();
      exchange_.emplace(*store_, token_, rate_);
    } catch (const std::exception& e) {
      executor_.emit(Notice{hypertune::detail::format("checkpoints go whole between hosts: {}", e.what())});
    }
}

void DriverCheckpoints::introduce(const LinkPointer& link, wire::Begin& begin) {
  const auto& connection = link->connection;
  connection->by_content = connection->by_content && exchange_;
  begin.by_content = connection->by_content;
  begin.inline_limit = executor_.options.inline_limit;
  if (begin.by_content) begin.token = token_;
  begin.rate_limit = executor_.options.rate_limit;
  begin.direct = executor_.options.direct && begin.by_content;
  begin.direct_network = executor_.options.network;
  begin.direct_port = executor_.options.port;
  if (shared_) {
    connection->area = SharedFolder::area_name(begin.incarnation, link->spec.name);
    begin.shared = shared_->on_hosts();
    begin.shared_proof = shared_->proof();
    begin.shared_area = connection->area;
  }
  if (begin.by_content) connection->tunnel->accept([this](int socket) { exchange_->serve(socket); });
}

void DriverCheckpoints::close(const ConnectionPointer& connection) {
  connection->arriving.clear();
  connection->sending.clear();
  connection->offered.clear();
  connection->stop.request_stop();
  while (!connection->requests.empty()) close_request(connection, connection->requests.begin()->first);
  if (shared_ && !connection->area.empty())
    hypertune::detail::run_apart(*slow_, [this, area = connection->area] { shared_->retire(area); });
}

void DriverCheckpoints::launching(TrialId trial) {
  if (shared_) hypertune::detail::run_apart(*disk_, [this, trial] { shared_->link(trial); });
}

void DriverCheckpoints::ended(TrialId trial) {
  if (exchange_) hypertune::detail::run_apart(*disk_, [this, trial] { exchange_->drop_partial(trial); });
}

void DriverCheckpoints::stop() {
  content_ids_.stop();
  fetches_.join();
  if (exchange_) exchange_->stop();
}

void DriverCheckpoints::reset() {
  disk_.reset();
  exchange_.reset();
  if (shared_) shared_->close();
  shared_.reset();
  content_ids_.reset();
  fetching_.clear();
  fetching_now_ = 0;
}

// ---- From a host ----

// An agent holds a trial back if its checkpoints are not taken as fast as it saves, so more offers are an error.
template <class Offers, class P>
void DriverCheckpoints::require_few(const Offers& offers, TrialId trial, const P& offer_of) {
  const auto same =
      std::count_if(offers.begin(), offers.end(), [&](const auto& each) { return offer_of(each).info.trial == trial; });
  if (same >= max_offered) fail(Errc::protocol, "too many checkpoints at once of trial {}", trial);
}

void DriverCheckpoints::on(const LinkPointer& link, const ConnectionPointer& connection, wire::Offer& m) {
  if (!link->has(m.info.trial, m.attempt))
    return connection->channel->send(wire::Taken{m.transfer, "its attempt is over"});
  if (m.shared) {
    if (!connection->shares) fail(Errc::protocol, "a checkpoint in a shared folder, which was not agreed on");
    require_few(connection->taking, m.info.trial, [](const auto& each) -> auto& { return each; });
    return take_shared(link, connection, m);
  }
  if (m.by_content) {
    if (!connection->by_content) fail(Errc::protocol, "an offer by content, which was not agreed on");
    require_few(connection->offered, m.info.trial, [](const auto& each) -> auto& { return each; });
    connection->offered.push_back(std::move(m));
    return fetch_next(link, connection);
  }
  require_few(connection->arriving, m.info.trial, [](const auto& each) -> auto& { return each.second->offer(); });
  const std::uint64_t transfer = m.transfer;
  const CheckpointInfo info = m.info;
  try {
    auto copy = std::make_shared<IncomingCopy>(*store_, std::move(m));
    connection->arriving[transfer] = std::move(copy);
  } catch (const std::exception& e) { return lose(connection, transfer, info, e.what()); }
  complete(link, connection, transfer);
}

void DriverCheckpoints::on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Piece& m) {
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
}

// The check reads the supposedly shared disk, which may take some time.
void DriverCheckpoints::on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Proof& proof) {
  if (!shared_ || connection->area.empty()) fail(Errc::protocol, "a Proof that was not asked for");
  hypertune::detail::run_apart(*slow_, [this, link, connection, proof, area = connection->area] {
    std::string why = proof.error;
    try {
      if (why.empty()) shared_->check(area, {proof.read, proof.wrote});
    } catch (const std::exception& e) { why = e.what(); }
    asio::post(executor_.io, [this, link, connection, why] {
      if (connection->over || executor_.closing.stop_requested()) return;
      connection->shares = why.empty();
      connection->channel->send(wire::Share{connection->shares});
      if (!connection->shares && !std::exchange(link->not_shared_reported, true))
        executor_.emit(Notice{hypertune::detail::format(
            "host '{}' does not share the folder of checkpoints, which are copied from and to it: {}", link->spec.name,
            why)});
    });
  });
}

void DriverCheckpoints::on(const LinkPointer&, const ConnectionPointer& connection, const wire::Serving& m) {
  if (executor_.options.direct) connection->endpoint = m.endpoint;
}

// A checkpoint is valid once it is sealed here.
void DriverCheckpoints::complete(const LinkPointer& link, const ConnectionPointer& connection, std::uint64_t transfer) {
  const auto copy = connection->arriving.at(transfer);
  if (!copy->complete()) return;
  connection->arriving.erase(transfer);
  hypertune::detail::run_apart(*disk_, [this, link, connection, copy] {
    std::optional<CheckpointInfo> sealed;
    std::string error;
    try {
      sealed = copy->seal();
    } catch (const std::exception& e) { error = e.what(); }
    asio::post(executor_.io, [this, link, connection, copy, sealed, error] {
      if (executor_.closing.stop_requested()) return;  // a resumed experiment finds it
      if (sealed) {
        link->account.sent += sealed->bytes;
        executor_.publish(*link);
      }
      take(link, connection, copy->offer(), sealed, error);
    });
  });
}

void DriverCheckpoints::take(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer,
                             const std::optional<CheckpointInfo>& sealed, const std::string& error) {
  const bool counts = !connection->over && link->has(offer.info.trial, offer.attempt);
  if (sealed && !counts) {
    const bool mine = fetching_.insert(sealed->trial).second;  // no equal one may be found before the drop
    hypertune::detail::run_apart(*disk_, [this, store = *store_, info = *sealed, mine]() mutable {
      try {
        store.drop(info);
      } catch (const std::exception&) {}
      if (mine)
        asio::post(executor_.io, [this, trial = info.trial] {
          fetching_.erase(trial);
          fetch_all();
        });
    });
    return;
  }
  if (!counts) return;
  if (!sealed) return lose(connection, offer.transfer, offer.info, error);
  if (!offer.shared) { note_holder(connection, *sealed); }
  executor_.emit(Checkpointed{offer.info.trial, offer.attempt, *sealed});
  connection->channel->send(wire::Taken{offer.transfer, error});
}
// The driver could not take a checkpoint: reports it to the host and the Tuner.
void DriverCheckpoints::lose(const ConnectionPointer& connection, std::uint64_t transfer, const CheckpointInfo& info,
                             const std::string& why) {
  executor_.emit(SaveFailed{info.trial, info.steps, why});
  connection->channel->send(wire::Taken{transfer, why});
}

void DriverCheckpoints::take_shared(const LinkPointer& link, const ConnectionPointer& connection,
                                    const wire::Offer& offer) {
  connection->taking.push_back(offer);
  hypertune::detail::run_apart(*disk_, [this, link, connection, offer, area = connection->area] {
    std::optional<CheckpointInfo> sealed;
    std::string error;
    try {
      sealed = shared_->take(area, offer.transfer, offer.info, *store_);
    } catch (const std::exception& e) { error = e.what(); }
    asio::post(executor_.io, [this, link, connection, offer, sealed, error] {
      if (executor_.closing.stop_requested()) return;  // a resumed experiment finds it
      connection->taking.pop_front();                  // they are taken in order
      if (sealed) {
        link->account.shared += sealed->bytes;
        executor_.publish(*link);
      }
      take(link, connection, offer, sealed, error);
    });
  });
}

// Starts possible fetches of a host's offers: a few at once per host, so that no host waits for the links of others
// unless very many fetch. Per trial one after the other, because each checkpoint shares much content with the previous
// one.
void DriverCheckpoints::fetch_next(const LinkPointer& link, const ConnectionPointer& connection) {
  auto& offered = connection->offered;
  if (executor_.closing.stop_requested()) return;
  for (auto next = offered.begin();
       next != offered.end() && connection->fetching < fetches_at_once && fetching_now_ < max_fetches;) {
    if (!fetching_.insert(next->info.trial).second) {
      ++next;
      continue;
    }
    const wire::Offer offer = std::move(*next);
    next = offered.erase(next);
    ++connection->fetching;
    ++fetching_now_;
    const auto outcome = std::make_shared<FetchOutcome>();
    auto done = [this, link, connection, offer, outcome] { fetched(link, connection, offer, *outcome); };
    auto job = [this, offer, outcome, done, name = "host '" + link->spec.name + "'", tunnel = connection->tunnel,
                stop = connection->stop.get_token(), store = *store_]() mutable {
      try {
        auto report = exchange_->fetch(tunnel, name, offer.info, stop);
        // Equal content, but a separate checkpoint: each one is dropped separately.
        if (report.was_here) report.checkpoint = duplicate(store, report.checkpoint);
        outcome->report = std::move(report);
      } catch (const std::exception& e) { outcome->error = e.what(); }
      asio::post(executor_.io, std::move(done));  // its references are released on the io_context's thread
    };
    try {
      fetches_.run(std::move(job));
    } catch (const std::exception& e) {
      outcome->error = e.what();
      asio::post(executor_.io, done);
    }
  }
}

void DriverCheckpoints::fetch_all() {
  const auto& links = executor_.links;
  for (std::size_t i = 0; i < links.size() && fetching_now_ < max_fetches; ++i) {
    turn_ = (turn_ + 1) % links.size();
    if (const auto& link = links[turn_]; link->connection) fetch_next(link, link->connection);
  }
}

void DriverCheckpoints::fetched(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer,
                                const FetchOutcome& outcome) {
  --connection->fetching;
  --fetching_now_;
  fetching_.erase(offer.info.trial);
  if (executor_.closing.stop_requested()) return;  // a resumed experiment finds it
  const auto& report = outcome.report;
  if (report) {
    link->account.sent += report->bytes_moved + report->bytes_overhead;
    link->account.reused += report->bytes_reused;
    executor_.publish(*link);
    if (executor_.options.direct) content_ids_.want(report->checkpoint);
  }
  take(link, connection, offer, report ? std::optional(report->checkpoint) : std::nullopt, outcome.error);
  fetch_all();
}

}  // namespace hypertune::inline v0::remote::detail
