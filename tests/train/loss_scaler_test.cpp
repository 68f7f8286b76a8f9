#include "support/test.hpp"

#include <hypertune/train/loss_scaler.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace hypertune;

namespace {

static_assert(std::is_trivially_copyable_v<LossScaler::State>);

TEST_CASE("the scale grows after so many good steps in a row and backs off at once") {
  LossScaler scaler({.initial = 16, .interval = 3});
  std::vector<double> scales;
  for (const char step : std::string("ggggggbggbggg")) {
    CHECK(scaler.update(step == 'g') == (step == 'g'));
    scales.push_back(scaler.scale());
  }
  CHECK(scales == std::vector<double>{16, 16, 32, 32, 32, 64, 32, 32, 32, 16, 16, 16, 32});
}

TEST_CASE("the scale stays within its bounds") {
  LossScaler scaler({.initial = 4, .interval = 1, .min = 2, .max = 8});
  for (int i = 0; i < 5; ++i) scaler.update(true);
  CHECK(scaler.scale() == 8);
  for (int i = 0; i < 5; ++i) scaler.update(false);
  CHECK(scaler.scale() == 2);
}

TEST_CASE("by default the scale begins with 2^16 and doubles every 2000 steps") {
  LossScaler scaler;
  for (int i = 0; i < 1999; ++i) scaler.update(true);
  CHECK(scaler.scale() == 65536);
  scaler.update(true);
  CHECK(scaler.scale() == 131072);
}

TEST_CASE("a restored scaler goes on as the other did") {
  LossScaler one({.interval = 5}), other({.interval = 5});
  for (int i = 0; i < 7; ++i) one.update(i != 1);
  other.restore(one.state());
  for (int i = 0; i < 20; ++i) {
    one.update(i % 7 != 0);
    other.update(i % 7 != 0);
    CHECK(one.state() == other.state());
  }
  const auto before = other.state();
  CHECK_THROWS_WITH(other.restore({0.5, 0}), ContainsSubstring("a loss scale of 0.5 is not within"));
  CHECK_THROWS_AS(other.restore({std::numeric_limits<double>::quiet_NaN(), 0}), Error);
  CHECK(other.state() == before);
}

TEST_CASE("a loss scaler's options have ranges") {
  CHECK_THROWS_WITH(LossScaler({.growth = 1}), ContainsSubstring("growth > 1"));
  CHECK_THROWS_WITH(LossScaler({.backoff = 1}), ContainsSubstring("0 < backoff < 1"));
  CHECK_THROWS_WITH(LossScaler({.interval = 0}), ContainsSubstring("interval >= 1"));
  CHECK_THROWS_WITH(LossScaler({.initial = 0.5}), ContainsSubstring("0 < min <= initial <= max"));
}

}  // namespace
