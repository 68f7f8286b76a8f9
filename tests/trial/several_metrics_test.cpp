// Several metrics in one co_yield: the shape that g++ 12 compiles, with names too long for the small-string buffer.
#include "support/test.hpp"

#include <hypertune/trial/training.hpp>

#include <string>

namespace ht = hypertune;

namespace {
ht::Training train(std::string suffix) {
  for (int step = 0; step < 3; ++step)
    co_yield ht::report("accuracy of the validation set " + suffix, 0.5 * step, "a loss with a long name " + suffix, 7,
                        "seconds", 2.f);
  co_yield ht::report("accuracy", 1.0, "loss", 0.25).at(9);
}
}  // namespace

TEST_CASE("a coroutine reports several metrics at once") {
  auto training = train("that is long");
  for (int step = 0; step < 3; ++step) {
    const auto report = training.next();
    REQUIRE(report);
    CHECK(report->metrics == ht::Metrics{{"accuracy of the validation set that is long", 0.5 * step},
                                         {"a loss with a long name that is long", 7},
                                         {"seconds", 2}});
  }
  const auto last = training.next();
  REQUIRE(last);
  CHECK(last->step == 9);
  CHECK(last->metrics == ht::report({{"accuracy", 1.0}, {"loss", 0.25}}).metrics);
  CHECK_FALSE(training.next());
}
