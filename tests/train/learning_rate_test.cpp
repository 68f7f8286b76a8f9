#include "support/test.hpp"

#include <hypertune/train/learning_rate.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

using namespace hypertune;

namespace {

static_assert(std::is_trivially_copyable_v<LearningRate::State>);

TEST_CASE("the factor of each rule") {
  CHECK(batch_factor(BatchRule::none, 32, 128) == 1);
  CHECK(batch_factor(BatchRule::linear, 32, 128) == 4);
  CHECK(batch_factor(BatchRule::square_root, 32, 128) == 2);
  CHECK(batch_factor(BatchRule::linear, 128, 32) == 0.25);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(batch_factor(BatchRule::linear, bad, 1), ContainsSubstring("chosen for one of"));
    CHECK_THROWS_WITH(batch_factor(BatchRule::none, 1, bad), ContainsSubstring("a learning rate for a batch of"));
  }
}

TEST_CASE("a larger batch has its rate after a warmup from the base rate") {
  LearningRate rate({.rate = 0.5, .batch = 256, .rule = BatchRule::linear, .warmup = 4});
  CHECK(rate.at(1280, 0) == 0.5);
  CHECK(rate.at(1280, 1) == 1);
  CHECK(rate.at(1280, 3) == 2);
  CHECK(rate.at(1280, 4) == 2.5);
  CHECK(rate.at(1280, 100) == 2.5);
}

TEST_CASE("after a resize a rate grows from where it was, and shrinks at once") {
  LearningRate rate({.rate = 1, .batch = 1, .warmup = 2});
  CHECK(rate.at(1, 0) == 1);
  CHECK(rate.at(1, 9) == 1);
  CHECK(rate.at(5, 10) == 1);
  CHECK(rate.at(5, 11) == 3);
  CHECK(rate.at(7, 11) == 3);  // in the middle of a warmup
  CHECK(rate.at(7, 12) == 5);
  CHECK(rate.at(2, 12) == 2);
  CHECK(rate.at(2, 12.5) == 2);
  CHECK(rate.at(4, 12.5) == 2);
  CHECK(rate.at(4, 14.5) == 4);
}

TEST_CASE("without a warmup the rate follows at once") {
  LearningRate rate({.rate = 0.1, .batch = 2, .rule = BatchRule::square_root, .warmup = 0});
  CHECK(rate.at(8, 0) == 0.2);
  CHECK(rate.at(2, 0) == 0.1);
}

TEST_CASE("a restored rate goes on in its warmup") {
  LearningRate one({.rate = 1, .batch = 1, .warmup = 10}), other = one;
  one.at(3, 0);
  one.at(3, 4);
  other.restore(one.state());
  CHECK(other.at(3, 5) == 2);
  CHECK(other.state() == one.state());
  CHECK_THROWS_WITH(LearningRate({.rate = 0}), ContainsSubstring("a learning rate of 0"));
  CHECK_THROWS_WITH(LearningRate({.warmup = -1}), ContainsSubstring("a warmup of -1"));
}

}  // namespace
