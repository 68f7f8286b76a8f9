// Which pods Kubernetes is told to place all or none.
#include "pod_fleet.hpp"
#include "support/test.hpp"

using hypertune::k8s::Gang;

TEST_CASE("pods of a trial are a group, and what is too few for a trial is none") {
  const Gang gang{.pods = 3, .least = 2, .workers = 8};
  CHECK(gang.group_of("worker-1") == 1);
  CHECK(gang.group_of("worker-3") == 1);
  CHECK(gang.group_of("worker-4") == 2);
  CHECK(gang.group_of("worker-7") == 3);
  CHECK(gang.group_of("worker-8") == 3);
  CHECK(Gang{.pods = 3, .least = 2, .workers = 7}.group_of("worker-7") == 0);
  CHECK(Gang{.pods = 3, .least = 2, .workers = 7}.group_of("worker-6") == 2);
  CHECK(gang.group_of("worker-x") == 0);
  CHECK(gang.group_of("worker-0") == 0);
  CHECK(Gang{}.group_of("worker-1") == 0);
}
