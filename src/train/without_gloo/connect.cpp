// Part of hypertune::train if Gloo was not found.
#include <hypertune/train/gloo_communicator.hpp>

namespace hypertune::inline v0 {

bool has_gloo() { return false; }

Communicator connect_gloo(const GroupPlace& place, Rendezvous&, const CommunicatorOptions&) {
  fail(Errc::usage,
       "rank {} of {} has no way to the others: hypertune::train was built without Gloo; install libgloo-dev and build "
       "again",
       place.rank, place.size());
}

}  // namespace hypertune::inline v0
