// Link: the state of one host and its current connection.
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

/// One incarnation of a host: a stream and its carrier.
struct Connection {
  explicit Connection(asio::io_context& io) : err(io), err_ended(io) {}
  std::shared_ptr<Channel> channel;
  StreamCarrier carrier;
  asio::posix::stream_descriptor err;
  Wakeup err_ended;
  bool err_over = false;
  std::string errors;                            // the end of the standard error
  std::string refusal;                           // sent by the agent
  FailureClass failure = FailureClass::unknown;  // class of the refusal
  bool greeted = false, begun = false;
  bool over = false;  // given up: its data is ignored
  std::map<std::uint64_t, std::shared_ptr<IncomingCopy>> arriving;
  std::deque<std::unique_ptr<OutgoingCopy>> sending;
  std::shared_ptr<Pace> pace;  // limits `sending`
  bool by_content = false;     // both sides support it
  std::shared_ptr<Tunnel> tunnel;
  std::stop_source stop;            // stops its fetches
  std::deque<wire::Offer> offered;  // offers to be fetched from it
  int fetching = 0;
  std::string endpoint;           // where other hosts can fetch from it
  std::deque<std::string> holds;  // digests of the latest checkpoints that it made or fetched
  struct Request {
    CheckpointInfo info;
    std::weak_ptr<Connection> provider;  // the peer named first for it
  };
  std::map<std::uint64_t, Request> requests;  // pending requests by content, by transfer
  int providing = 0;                          // requests of other hosts for which it was named first
  std::string area;                           // its folder in the shared folder
  bool shares = false;                        // it has proved that it shares the folder
  std::deque<wire::Offer> taking;             // offers that are being moved from there
};

/// An attempt on a host.
struct Route {
  Attempt attempt = 0;
  bool seated = false;                       // one worker of a group
  std::vector<CheckpointInfo> restore = {};  // checkpoints that the host may ask for
  int requests = 0;                          // number of such requests
  bool parked = false;
  std::string lost = {};  // if parked and lost: why; reported when it should continue
  bool waiting = false;   // its report was passed on, the answer is pending
  bool stopping = false;  // the Tuner has sent Stop
  bool leaving = false;   // told to stop because its host goes away
};

/// A host, as the driver sees it.
struct Link {
  Link(asio::io_context& io, RemoteHost host, const HostTimeouts& timeouts)
      : spec(std::move(host)), machine(timeouts), timer(io) {}
  RemoteHost spec;
  int index = -1;            // index in hosts(); -1: never reached, and not present at the start
  std::size_t position = 0;  // index in all links
  HostStateMachine machine;
  Host host;
  std::shared_ptr<Connection> connection;
  std::uint64_t generation = 0;  // number of connection attempts
  bool tried = false;            // reached, or failed to be reached, at least once
  asio::steady_timer timer;
  Seconds save_by = std::numeric_limits<double>::infinity();  // draining: until then, trials may finish their step
  std::map<RunKey, Route> routes;
  HostAccount account;
  std::string reported_reason;  // the last reported reason why it is not used
  std::string reported_kind;    // kind_of_problem() of the reason, if hosts are interchangeable
  bool reported_drain = false;  // the reason was that it goes away
  bool wait_explained = false;  // the pool's owner knows why it has not started, and reports it
  bool without_room = false;    // the reason is a lack of room that may never end
  /// The attempt of a message on this host; nullptr if it is not, or no longer, there.
  template <class M>
  Route* route(const M& m) {
    const auto found = routes.find(RunKey(m.trial, m.member));
    return found != routes.end() && found->second.attempt == m.attempt ? &found->second : nullptr;
  }
  /// A worker of the trial here that should continue from this checkpoint; nullptr if there is none.
  Route* route_from(TrialId trial, const CheckpointInfo& restore) {
    for (auto at = routes.lower_bound(RunKey(trial, 0)); at != routes.end() && at->first.first == trial; ++at)
      if (std::find(at->second.restore.begin(), at->second.restore.end(), restore) != at->second.restore.end())
        return &at->second;
    return nullptr;
  }
  /// Whether some worker of this attempt is here.
  bool has(TrialId trial, Attempt attempt) const {
    for (auto at = routes.lower_bound(RunKey(trial, 0)); at != routes.end() && at->first.first == trial; ++at)
      if (at->second.attempt == attempt) return true;
    return false;
  }
  bool has(TrialId trial) const {
    const auto at = routes.lower_bound(RunKey(trial, 0));
    return at != routes.end() && at->first.first == trial;
  }

  /// Whether the end of an attempt is a preemption, because its host goes away.
  bool preempts(const Route& route) const { return machine.draining() && !route.stopping; }

  bool not_shared_reported = false;  // it was reported that it does not share the folder
  Seconds up_since = 0;
};

using LinkPointer = std::shared_ptr<Link>;
using ConnectionPointer = std::shared_ptr<Connection>;

}  // namespace hypertune::inline v0::remote::detail
