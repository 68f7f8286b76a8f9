// Hosts in sentences.
#include "support/test.hpp"

#include <hypertune/execute/detail/host_text.hpp>
#include <hypertune/execute/detail/placement.hpp>

using namespace hypertune;
using hypertune::detail::host_text;
using hypertune::detail::host_troubles_text;
using hypertune::detail::HostTroubles;

TEST_CASE("a worker is called by its name, which says what it is") {
  CHECK(host_text("a") == "host 'a'");
  CHECK(host_text("worker-12") == "worker-12");
  CHECK(host_text("worker-") == "host 'worker-'");
  CHECK(host_text("worker-1b") == "host 'worker-1b'");
}

TEST_CASE("a trouble that several hosts have is said once") {
  CHECK(host_troubles_text({}) == "");
  CHECK(host_troubles_text({{"a", "no route"}}) == "host 'a': no route");
  CHECK(host_troubles_text({{"a", "no route"}, {"b", "refused"}, {"c", "no route"}}) ==
        "host 'a', host 'c': no route; host 'b': refused");
  HostTroubles workers;
  for (int i = 1; i <= 32; ++i) workers.emplace_back("worker-" + std::to_string(i), "no partition");
  CHECK(host_troubles_text(workers) == "all 32 workers: no partition");
  workers.emplace_back("b", "refused");
  CHECK(host_troubles_text(workers) == "worker-1, worker-2, worker-3 and 29 more: no partition; host 'b': refused");
  CHECK(host_troubles_text(workers, 1) == "worker-1, worker-2, worker-3 and 29 more: no partition");
}

TEST_CASE("a host that was never there is waited for, and not lost") {
  const Resources one{.cpus = 1};
  Placement placement({{"worker-1", {.cpus = 2}, Presence::coming}});
  placement.remove_host(0, false, "waits in a queue");
  CHECK(placement.why_not(one) == "waits for a worker: worker-1: waits in a queue");
  placement.restore_host(0);
  CHECK(placement.why_not(one) == "");
  placement.remove_host(0, false, "no sign of life");
  CHECK(placement.why_not(one) == "waits for a host that is lost now to come back: worker-1: no sign of life");
}
