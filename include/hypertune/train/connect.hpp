// The communicator that fits where the ranks are. Link hypertune::train.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/group.hpp>

namespace hypertune::inline v0 {

/// Called by all ranks of a generation with their places and a Rendezvous they have in common. Threads of one process
/// share memory; others are connected by Gloo; a single rank needs nobody. Throws a GroupError that names the ranks
/// which do not come within the timeout.
Communicator connect(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options = {});

/// Of a trial whose workers are the same from the beginning of an attempt to its end, once in an attempt, on all of
/// them: waits until all are there, and connects them. When one is lost, or the attempt is to end, every collective
/// throws a GroupError; the attempt is over then, and the trial begins again from its last checkpoint. (With
/// ElasticState the others go on.)
Communicator connect(Context& context, const CommunicatorOptions& options = {});

}  // namespace hypertune::inline v0
