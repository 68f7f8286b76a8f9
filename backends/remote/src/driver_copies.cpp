// DriverCheckpoints: providing checkpoints to hosts, by the driver or by other hosts.
#include "driver_checkpoints.hpp"

#include <hypertune/net/spawn.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace hypertune::inline v0::remote::detail {

void DriverCheckpoints::on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Want& m) {
  Route* route = link->route_from(m.trial, m.info);
  if (route == nullptr)
    return connection->channel->send(wire::Unavailable{m.transfer, "its trial is not to go on from that"});
  if (++route->requests > max_requests) fail(Errc::protocol, "too many wishes for checkpoints");
  send_copy(link, connection, m);
}

void DriverCheckpoints::on(const LinkPointer&, const ConnectionPointer& connection, const wire::Unavailable& m) {
  connection->arriving.erase(m.transfer);
  close_request(connection, m.transfer);
}

void DriverCheckpoints::on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Fetched& m) {
  if (const auto request = connection->requests.find(m.transfer); request != connection->requests.end()) {
    const CheckpointInfo info = request->second.info;
    note_without(info.digest, m.without);
    note_holder(connection, info);
    close_request(connection, m.transfer);
    if (executor_.options.direct) content_ids_.want(info);
  }
  (m.direct ? link->account.direct : link->account.received) += m.moved;
  link->account.reused += m.reused;
  executor_.publish(*link);
}

std::optional<wire::Piece> DriverCheckpoints::next_whole(const ConnectionPointer& connection) {
  while (!connection->sending.empty() && connection->pace->ready(connection->channel)) {
    auto copy = std::move(connection->sending.front());
    connection->sending.pop_front();
    try {
      if (auto piece = copy->next(connection->pace->max_piece())) {
        connection->pace->took(piece->bytes.size());
        connection->sending.push_back(std::move(copy));
        return piece;
      }
    } catch (const std::exception& e) {
      connection->channel->send(wire::Unavailable{copy->offer().transfer, e.what()});
    }
  }
  return std::nullopt;
}

// The host has made or fetched the checkpoint, so others may fetch it from there.
void DriverCheckpoints::note_holder(const ConnectionPointer& connection, const CheckpointInfo& info) {
  auto& holds = connection->holds;
  if (std::find(holds.begin(), holds.end(), info.digest) != holds.end()) return;
  holds.push_back(info.digest);
  if (holds.size() > max_held) holds.pop_front();
}

// These hosts could not provide the checkpoint: they have dropped it, or it is damaged.
void DriverCheckpoints::note_without(const std::string& digest, const std::vector<std::string>& endpoints) {
  for (const auto& other : executor_.links) {
    if (!other->connection) continue;
    if (std::find(endpoints.begin(), endpoints.end(), other->connection->endpoint) == endpoints.end()) continue;
    std::erase(other->connection->holds, digest);
  }
}

// Other hosts that have the checkpoint and can be asked, those with the fewest current transfers first.
wire::Source DriverCheckpoints::source_of(const LinkPointer& link, const ConnectionPointer& connection,
                                          const wire::Want& wanted) {
  wire::Source source{.transfer = wanted.transfer};
  std::vector<ConnectionPointer> holders;
  for (const auto& other : executor_.links) {
    if (other == link || !other->connection || !other->machine.up() || other->connection->endpoint.empty()) continue;
    const auto& holds = other->connection->holds;
    if (std::find(holds.begin(), holds.end(), wanted.info.digest) == holds.end()) continue;
    holders.insert(std::upper_bound(holders.begin(), holders.end(), other->connection,
                                    [](const auto& a, const auto& b) { return a->providing < b->providing; }),
                   other->connection);
  }
  if (holders.empty()) return source;
  for (const auto& holder : holders) source.peers.push_back(holder->endpoint);
  source.content_id = content_ids_.of(wanted.info.digest);
  ++holders.front()->providing;
  connection->requests[wanted.transfer].provider = holders.front();
  return source;
}

void DriverCheckpoints::close_request(const ConnectionPointer& connection, std::uint64_t transfer) {
  const auto node = connection->requests.extract(transfer);
  if (!node) return;
  if (const auto provider = node.mapped().provider.lock()) --provider->providing;
}

void DriverCheckpoints::send_copy(const LinkPointer& link, const ConnectionPointer& connection,
                                  const wire::Want& wanted) {
  const bool by_content = connection->by_content && wanted.info.bytes > executor_.options.inline_limit;
  if (by_content) connection->requests[wanted.transfer].info = wanted.info;
  note_without(wanted.info.digest, wanted.without);
  if (by_content && !wanted.from_driver) {
    const auto source = source_of(link, connection, wanted);
    if (!source.peers.empty()) return connection->channel->send(source);
  }
  hypertune::detail::run_apart(*disk_, [this, link, connection, wanted, by_content] {
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
    asio::post(executor_.io, [this, link, connection, wanted, by_content, error, corrupt] {
      if (connection->over || executor_.closing.stop_requested()) return;
      std::string why = error;
      if (why.empty() && by_content) return connection->channel->send(wire::Source{.transfer = wanted.transfer});
      if (why.empty()) {
        try {
          auto copy = std::make_unique<OutgoingCopy>(*store_, wanted.info, wanted.transfer, 0);
          connection->channel->send(copy->offer());
          connection->sending.push_back(std::move(copy));
          connection->channel->poke();
          return;
        } catch (const std::exception& e) { why = e.what(); }
      }
      if (corrupt && link->has(wanted.trial)) executor_.emit(CheckpointLost{wanted.trial, wanted.info, why});
      connection->channel->send(wire::Unavailable{wanted.transfer, why, corrupt});
    });
  });
}

}  // namespace hypertune::inline v0::remote::detail
