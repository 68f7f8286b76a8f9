// The communicator that fits where the ranks are. Link hypertune::train.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

namespace hypertune::inline v0 {

/// Called by all ranks of a generation with their places and a Rendezvous they have in common. Threads of one process
/// share memory; others are connected by Gloo; a single rank needs nobody. Throws a GroupError that names the ranks
/// which do not come within the timeout.
Communicator connect(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options = {});

}  // namespace hypertune::inline v0
