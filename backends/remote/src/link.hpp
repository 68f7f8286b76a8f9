// Link: what the executor knows of one host and of its present connection.
#pragma once

#include "channel.hpp"
#include "checkpoint_exchange.hpp"
#include "copies.hpp"
#include "pace.hpp"

#include <hypertune/remote/executor.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// One incarnation of a host: a stream, and what carries it.
struct Connection {
  explicit Connection(asio::io_context& io) : err(io), err_ended(io) {}
  std::shared_ptr<Channel> channel;
  StreamCarrier carrier;
  asio::posix::stream_descriptor err;
  Signal err_ended;
  bool err_over = false;
  std::string errors;                            // the end of what came on standard error
  std::string refusal;                           // what the agent itself said
  FailureClass failure = FailureClass::unknown;  // that of the refusal
  bool greeted = false, begun = false;
  bool over = false;  // given up: nothing of it counts
  std::map<std::uint64_t, std::shared_ptr<IncomingCopy>> arriving;
  std::deque<std::unique_ptr<OutgoingCopy>> sending;
  std::shared_ptr<Pace> pace;  // of these
  bool by_content = false;     // both sides can
  std::shared_ptr<Tunnel> tunnel;
  std::stop_source stop;            // of its fetches
  std::deque<wire::Offer> offered;  // what is to be fetched from it
  int fetching = 0;
  std::string endpoint;           // where other hosts can fetch from it
  std::deque<std::string> holds;  // digests of the latest checkpoints that it made or fetched
  struct Wish {
    CheckpointInfo info;
    std::weak_ptr<Connection> giver;  // who was named first for it
  };
  std::map<std::uint64_t, Wish> wishes;  // for what comes by content, by transfer
  int giving = 0;                        // wishes of others for which it was named first
  std::string area;                      // of it in the shared folder
  bool shares = false;                   // it has shown that it has that folder
  std::deque<wire::Offer> taking;        // what is being taken from there
};

/// An attempt on a host.
struct Route {
  Attempt attempt = 0;
  bool seated = false;                       // one worker of a group
  std::vector<CheckpointInfo> restore = {};  // what the host may ask for
  int wishes = 0;                            // how often it has
  bool parked = false;
  std::string lost = {};  // parked: why it is there no more; told when it is to go on
  bool waiting = false;   // its report was told, the answer is awaited
  bool stopping = false;  // the Tuner has said Stop
  bool leaving = false;   // told to stop because its host goes away
};

/// A host, as the driver sees it.
struct Link {
  Link(asio::io_context& io, RemoteHost host, const HostTimeouts& timeouts)
      : spec(std::move(host)), machine(timeouts), timer(io) {}
  RemoteHost spec;
  int index = -1;            // among hosts(); -1: never reached, and not there at the start
  std::size_t position = 0;  // among all links
  HostMachine machine;
  Host host;
  std::shared_ptr<Connection> connection;
  std::uint64_t generation = 0;  // of attempts to connect
  bool tried = false;            // reached, or failed to be, at least once
  bool told = false;             // the Tuner takes it for usable
  asio::steady_timer timer;
  Seconds save_by = std::numeric_limits<double>::infinity();  // draining: then trials are not let to their step's end
  std::map<RunKey, Route> routes;
  HostAccount account;
  std::string said;           // why it is not used, as people were told last
  std::string said_kind;      // … where hosts are alike, its kind_of_trouble()
  bool said_drain = false;    // … while it was going away
  bool explained = false;     // why it is not there yet is known by whoever keeps the pool, who tells people
  bool without_room = false;  // … that is a place that may never be there
  /// What is known of an attempt there; nullptr: it is not, or no more.
  template <class M>
  Route* route(const M& m) {
    const auto found = routes.find(RunKey(m.trial, m.member));
    return found != routes.end() && found->second.attempt == m.attempt ? &found->second : nullptr;
  }
  /// Of any worker of the trial there that is to go on from this checkpoint.
  Route* route_from(TrialId trial, const CheckpointInfo& restore) {
    for (auto at = routes.lower_bound(RunKey(trial, 0)); at != routes.end() && at->first.first == trial; ++at)
      if (std::find(at->second.restore.begin(), at->second.restore.end(), restore) != at->second.restore.end())
        return &at->second;
    return nullptr;
  }
  /// Whether some worker of this attempt is there.
  bool has(TrialId trial, Attempt attempt) const {
    for (auto at = routes.lower_bound(RunKey(trial, 0)); at != routes.end() && at->first.first == trial; ++at)
      if (at->second.attempt == attempt) return true;
    return false;
  }
  bool has(TrialId trial) const {
    const auto at = routes.lower_bound(RunKey(trial, 0));
    return at != routes.end() && at->first.first == trial;
  }

  /// Whether the end of an attempt there is the host's doing, which goes away.
  bool preempts(const Route& route) const { return machine.draining() && !route.stopping; }

  bool told_apart = false;  // that it does not have the shared folder
  Seconds up_since = 0;
};

using LinkPointer = std::shared_ptr<Link>;
using ConnectionPointer = std::shared_ptr<Connection>;

}  // namespace hypertune::inline v0::remote::detail
