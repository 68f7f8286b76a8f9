#include "support/test.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/random.hpp>
#include <hypertune/space/params.hpp>

#include <fmt/format.h>

#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace ht = hypertune;

namespace {

template <class T>
T as(ht::Value value) {
  return ht::Params{{"p", value}}.get<T>("p");
}

constexpr double two63 = 9223372036854775808.0;
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

}  // namespace

TEST_CASE("a real number is written as one") {
  CHECK(ht::to_string(ht::Value(1.0)) == "1.0");
  CHECK(ht::to_string(ht::Value(-0.0)) == "-0.0");
  CHECK(ht::to_string(ht::Value(0.5)) == "0.5");
  CHECK(ht::to_string(ht::Value(1e15)) == "1000000000000000.0");
  CHECK(ht::to_string(ht::Value(1e22)) == "1e+22");
  CHECK(ht::to_string(ht::Value(std::numeric_limits<double>::infinity())) == "inf");
  CHECK(ht::to_string(ht::Value(std::int64_t{1})) == "1");
  CHECK(ht::to_string(ht::Value(true)) == "true");
  CHECK(ht::to_string(ht::Params{{"a", 1.0}, {"b", std::int64_t{1}}}) == "a=1.0 b=1");
}

TEST_CASE("numbers of both types have one exact order") {
  using ht::detail::compare_numbers;
  const std::vector<ht::Value> ascending{-std::numeric_limits<double>::infinity(),
                                         -2 * two63,
                                         least,
                                         least + 1,
                                         -1.5,
                                         std::int64_t{-1},
                                         0.5,
                                         std::int64_t{1},
                                         1.5,
                                         0x1p53,
                                         (std::int64_t{1} << 53) + 1,
                                         most,
                                         two63};
  for (std::size_t i = 0; i < ascending.size(); ++i)
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      INFO(ht::to_string(ascending[i]) << " and " << ht::to_string(ascending[j]));
      CHECK((compare_numbers(ascending[i], ascending[j]) == (i <=> j)));
    }
  CHECK((compare_numbers(std::int64_t{1}, 1.0) == 0));
  CHECK((compare_numbers(least, -two63) == 0));
  for (const ht::Value& other : {ht::Value("1"), ht::Value(true), ht::Value(std::nan(""))})
    CHECK((compare_numbers(other, std::int64_t{1}) == std::partial_ordering::unordered));
}

// Under UBSan (-fsanitize=float-cast-overflow) too: nothing is converted before it is known to fit.
TEST_CASE("numbers are converted where nothing is lost, and refused where something would be") {
  CHECK(as<int>(std::int64_t{7}) == 7);
  CHECK(as<int>(7.0) == 7);
  CHECK(as<int>(-0.0) == 0);
  CHECK(as<float>(0.5) == 0.5F);
  CHECK(as<double>(std::int64_t{1} << 60) == 1152921504606846976.0);
  CHECK(as<std::int64_t>(-two63) == least);
  CHECK(as<std::uint64_t>(two63) == std::uint64_t{1} << 63U);
  CHECK(as<std::uint64_t>(most) == static_cast<std::uint64_t>(most));
  CHECK(as<std::int8_t>(std::int64_t{-128}) == -128);
  CHECK(as<float>(std::numeric_limits<double>::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(as<long double>(0.1) == static_cast<long double>(0.1));
  CHECK(std::isnan(as<double>(std::nan(""))));

  const auto refused = [](auto kind, ht::Value value) {
    INFO(ht::to_string(value));
    CHECK_THROWS_WITH(as<decltype(kind)>(value), ContainsSubstring("'p'") && ContainsSubstring("does not fit"));
  };
  for (const double wild : {1e300, -1e300, two63, std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), std::nan("")}) {
    refused(std::int64_t{}, wild);
    refused(int{}, wild);
  }
  for (const double wild : {2 * two63, -1.0, -1e-300, 0.5, std::nan("")}) refused(std::uint64_t{}, wild);
  for (const double wild : {1e39, -1e39, 0.1, std::nan("")}) refused(float{}, wild);
  refused(int{}, 2147483648.0);
  refused(int{}, std::int64_t{1} << 40);
  refused(unsigned{}, std::int64_t{-1});
  refused(std::uint64_t{}, least);
  refused(std::int8_t{}, std::int64_t{-129});
  for (const auto& wild : {most, most - 1, (std::int64_t{1} << 53) + 1}) {  // they round, some of them to 2^63
    refused(double{}, wild);
    refused(float{}, wild);
  }
  CHECK_THROWS_WITH(as<bool>(1.0), ContainsSubstring("not of the type asked for"));
  CHECK_THROWS_WITH(as<int>(std::string("7")), ContainsSubstring("not of the type asked for"));
}

TEST_CASE("what a seed draws is the same for ever: journals rest on it") {
  const auto first = [](std::uint64_t seed, std::initializer_list<std::uint64_t> purpose) {
    return ht::derived_rng(seed, purpose)();
  };
  CHECK(first(7, {}) == 16438499199223769390U);
  CHECK(first(7, {0}) == 14397943200240920277U);
  CHECK(first(7, {1, 2}) == 2404507031889095292U);
  CHECK(first(7, {0xffffffffffffffffU, 3, 0x636d61U}) == 11422558795895557589U);
  CHECK(ht::detail::mixed_in(ht::detail::mixed_in(0, 7), 0) == 2531748774112664186U);
}

// Else the tests, and the libraries that they link, have two definitions of each function that formats.
TEST_CASE("the tests are compiled as the library is") {
  STATIC_REQUIRE(std::is_same_v<ht::detail::FormatText<int>, fmt::string_view>);
}
