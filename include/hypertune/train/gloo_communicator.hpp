// Collectives among processes and hosts over TCP, by Gloo. Link hypertune::train.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

namespace hypertune::inline v0 {

/// Whether hypertune::train was built with Gloo.
bool has_gloo();

/// The communicator of one rank. All ranks call this with their own places and a common Rendezvous. On one host it uses
/// 127.0.0.1, else this host's address in `place.network`; Error of kind `usage` if no network is given or this host
/// has no address in it. Throws a GroupError that names the ranks that do not call it within the timeout, or end
/// meanwhile.
///
/// The other ranks notice within milliseconds if a rank ends or is killed, whatever they do; if a rank hangs, when a
/// collective has waited for `timeout`. The connections are Gloo's, neither encrypted nor authenticated: use a network
/// in which all hosts trust each other.
Communicator connect_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options = {});

}  // namespace hypertune::inline v0
