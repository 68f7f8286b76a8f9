// The ring is for many ranks; here it carries few, as the machine has few processors.
#if __has_include("gloo/collectives.hpp")
#include "gloo/collectives.hpp"
#include "gloo/links.hpp"
#include "support/communicator_conformance.hpp"
#include "support/ranks.hpp"
#include "support/test.hpp"

#include <memory>
#include <string>
#include <vector>

namespace ht = hypertune;

TEST_CASE("Gloo's ring is a communicator") {
  const int size = GENERATE(2, 3, 5);
  CAPTURE(size);
  ht::test::MemoryRendezvous rendezvous;
  const auto outcomes = ht::test::run_threads(size, [&](int rank) {
    auto links = ht::detail::link_gloo(ht::test::place_of(rank, size), rendezvous, {});
    auto backend =
        std::make_unique<ht::detail::GlooCommunicator>(std::move(links), rank, size, ht::CommunicatorOptions{});
    backend->set_ring_from(2);
    ht::Communicator communicator(std::move(backend));
    ht::test::check_type<float>(communicator, true);
    ht::test::check_type<ht::Half>(communicator, false);
    ht::test::check_type<ht::BFloat16>(communicator, false);
    ht::test::check_type<std::int64_t>(communicator, false);
    ht::test::check_rounding(communicator, 300'001);
    ht::test::check_edges(communicator);
  });
  CHECK(outcomes == std::vector<std::string>(static_cast<std::size_t>(size)));
}
#endif
