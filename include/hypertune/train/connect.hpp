// Makes the communicator that fits the places of the ranks. Link hypertune::train.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/group.hpp>

namespace hypertune::inline v0 {

/// Called by all ranks of a generation with their places and a common Rendezvous. Threads of one process share memory;
/// other ranks are connected by Gloo; a single rank needs no connection. Throws a GroupError that names the ranks which
/// do not call it within the timeout.
Communicator connect(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options = {});

/// For a trial with the same workers during a whole attempt. Called once per attempt by all of them: waits until all
/// are there, and connects them. When one is lost, or the attempt is to end, every collective throws a GroupError. Then
/// the attempt ends, and the trial starts again from its last checkpoint. (With ElasticState the other workers
/// continue.)
Communicator connect(Context& context, const CommunicatorOptions& options = {});

}  // namespace hypertune::inline v0
