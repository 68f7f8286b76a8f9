#include "support/executor_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/local/processes.hpp>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("processes keep the laws of executors") {
  executor_conformance([] { return processes({.workers = 3}); }, {.many = 300, .shutdowns = 6});
}
