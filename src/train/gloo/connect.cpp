#include "collectives.hpp"
#include "links.hpp"

#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>

#include <memory>
#include <utility>

namespace hypertune::inline v0 {

bool has_gloo() { return true; }

Communicator connect_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options) {
  if (place.size() == 1) return std::move(thread_communicators(1, options).front());
  auto links = detail::link_gloo(place, rendezvous, options);
  return Communicator(std::make_unique<detail::GlooCommunicator>(std::move(links), place.rank, place.size(), options));
}

}  // namespace hypertune::inline v0
