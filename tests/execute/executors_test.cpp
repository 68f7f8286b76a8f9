#include "support/executor_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/execute/inline.hpp>
#include <hypertune/execute/simulated.hpp>
#include <hypertune/execute/threads.hpp>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("threads keep the laws of executors") {
  executor_conformance([] { return threads(3); });
}

TEST_CASE("the inline executor keeps the laws of executors") {
  executor_conformance([] { return run_inline(); }, {.concurrent = false});
}

TEST_CASE("the simulated executor keeps the laws of executors") {
  executor_conformance([] { return simulated({.workers = 3, .speed_spread = 0.5, .straggle_probability = 0.1}); },
                       {.concurrent = false});
}
