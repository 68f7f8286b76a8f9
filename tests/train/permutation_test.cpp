#include "support/test.hpp"

#include <hypertune/train/detail/permutation.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

using namespace hypertune;

namespace {

std::vector<std::uint64_t> all_of(std::uint64_t n, std::uint64_t key) {
  const Permutation order(n, key);
  std::vector<std::uint64_t> items;
  for (std::uint64_t i = 0; i < n; ++i) items.push_back(order.at(i));
  return items;
}

TEST_CASE("a permutation has each item once") {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t n = 0; n < 70; ++n) sizes.push_back(n);
  for (const std::uint64_t n : {255, 256, 257, 1000, 4095, 4096, 4097, 65536, 100003}) sizes.push_back(n);
  for (const std::uint64_t n : sizes)
    for (const std::uint64_t key : {0U, 1U, 77U}) {
      auto items = all_of(n, key);
      std::sort(items.begin(), items.end());
      bool once = true;
      for (std::uint64_t i = 0; i < n; ++i) once = once && items[i] == i;
      CAPTURE(n, key);
      CHECK(once);
    }
}

TEST_CASE("a permutation is a function of its key") {
  CHECK(all_of(100, 5) == all_of(100, 5));
  CHECK(all_of(100, 5) != all_of(100, 6));
  // What a run in the middle of an epoch goes on by must not change from version to version.
  CHECK(all_of(5, 1) == std::vector<std::uint64_t>{3, 1, 2, 4, 0});
}

TEST_CASE("over many keys all orders of few items are equally likely") {
  for (const int n : {2, 3, 4, 5}) {
    std::map<std::vector<std::uint64_t>, int> counts;
    const int draws = 60000;
    for (int key = 0; key < draws; ++key)
      ++counts[all_of(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(key))];
    double orders = 1;
    for (int i = 2; i <= n; ++i) orders *= i;
    REQUIRE(static_cast<double>(counts.size()) == orders);
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += std::pow(count - draws / orders, 2) / (draws / orders);
    const double freedom = orders - 1;
    CAPTURE(n, chi_square);
    CHECK(chi_square < freedom + 4 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("the order of many items shows no trend") {
  const std::uint64_t n = 100000;
  const auto items = all_of(n, 3);
  double product = 0, neighbours = 0;
  const double middle = static_cast<double>(n - 1) / 2, variance = static_cast<double>(n * n - 1) / 12;
  for (std::uint64_t i = 0; i < n; ++i)
    product += (static_cast<double>(i) - middle) * (static_cast<double>(items[i]) - middle);
  for (std::uint64_t i = 1; i < n; ++i)
    neighbours += (static_cast<double>(items[i - 1]) - middle) * (static_cast<double>(items[i]) - middle);
  const double bound = 4 / std::sqrt(static_cast<double>(n));  // of a correlation, four deviations
  CHECK(std::abs(product / static_cast<double>(n) / variance) < bound);
  CHECK(std::abs(neighbours / static_cast<double>(n) / variance) < bound);
}

TEST_CASE("a permutation of very many items stays within them, without a table") {
  for (const std::uint64_t n : {std::uint64_t{1000000007}, (std::uint64_t{1} << 40U) + 1, std::uint64_t{1} << 62U}) {
    const Permutation order(n, 9);
    bool within = true;
    for (std::uint64_t i = 0; i < 1000; ++i) within = within && order.at(i) < n && order.at(n - 1 - i) < n;
    CHECK(within);
  }
  CHECK_THROWS_WITH(Permutation((std::uint64_t{1} << 62U) + 1, 0), ContainsSubstring("2^62 is the most"));
  CHECK_THROWS_WITH(Permutation(4, 0).at(4), "item 4 of a permutation of 4");
}

}  // namespace
