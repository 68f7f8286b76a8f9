#include "support/test.hpp"

#include <hypertune/trial/resources.hpp>

using hypertune::CustomResources;
using hypertune::detail::fits;

TEST_CASE("an amount fits although it is short by a rounding error") {
  double ten_times = 0;
  for (int i = 0; i < 10; ++i) ten_times += 0.1;
  CHECK(ten_times < 1);
  CHECK(fits(1, ten_times));
  CHECK_FALSE(fits(1, 0.999));
}

TEST_CASE("custom resources fit if each that is needed is there") {
  const CustomResources has{{{"disk", 2}, {"licence", 1}}};
  CHECK(fits(CustomResources{}, has));
  CHECK(fits(CustomResources{{{"licence", 1}}}, has));
  CHECK(fits(CustomResources{{{"other", 0}}}, has));
  CHECK_FALSE(fits(CustomResources{{{"disk", 1}, {"licence", 2}}}, has));
  CHECK_FALSE(fits(CustomResources{{{"other", 1}}}, has));
}
