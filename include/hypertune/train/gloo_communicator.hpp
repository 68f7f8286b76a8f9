// Collectives among processes and hosts over TCP, carried by Gloo. Link hypertune::train.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

namespace hypertune::inline v0 {

/// Whether hypertune::train was built with Gloo.
bool has_gloo();

/// The communicator of one rank; all ranks call this with their own place and a Rendezvous they have in common. On one
/// host over 127.0.0.1; else over this host's address in `place.network`, Error of kind `usage` where none is named or
/// this host has none in it. Ranks that do not come within the timeout, or end meanwhile, are named by a GroupError.
///
/// A rank that ends, or is killed, is known to the others within milliseconds, whatever they do; one that hangs when a
/// collective has waited for `timeout`. Connections are Gloo's: neither encrypted nor authenticated, so that the
/// network should be one where all may speak to all.
Communicator connect_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options = {});

}  // namespace hypertune::inline v0
