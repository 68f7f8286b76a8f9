#include "support/test.hpp"
#include "support/thread_ranks.hpp"

#include <hypertune/train/accumulator.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace hypertune;
using hypertune::test::run_ranks;

namespace {

using Values = std::map<std::string, double, std::less<>>;

TEST_CASE("metrics are of all ranks, each of which may have names of its own") {
  std::vector<Values> results(3), later(3);
  run_ranks(3, [&](const Communicator& communicator) {
    const int rank = communicator.rank();
    Accumulator accumulator;
    accumulator.add("loss", rank, rank);  // 1 * 1 and 2 * 2 over 3
    accumulator.sum("seen", 10);
    if (rank == 1) accumulator.sum("only of rank 1", 5);
    if (rank == 2) accumulator.add("empty", std::nan(""), 0);
    results[static_cast<std::size_t>(rank)] = accumulator.reduce(communicator);
    if (rank == 0) accumulator.add("loss", 3, 3);
    later[static_cast<std::size_t>(rank)] = accumulator.reduce(communicator);
  });
  for (const auto& result : results) CHECK(result == Values{{"loss", 5.0 / 3}, {"only of rank 1", 5}, {"seen", 30}});
  for (const auto& result : later) CHECK(result == Values{{"loss", 14.0 / 6}, {"only of rank 1", 5}, {"seen", 30}});
}

TEST_CASE("metrics of any sharing are those of one worker, to the bit on all ranks") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int size = std::uniform_int_distribution<int>(1, 5)(random);
    const std::vector<std::string> names = {"a", "b", std::string(200, 'c'), ""};
    std::vector<std::tuple<int, std::string, double, double>> all;
    for (int i = std::uniform_int_distribution<int>(0, 40)(random); i > 0; --i)
      all.emplace_back(std::uniform_int_distribution<int>(0, size - 1)(random), names[random() % 4],
                       std::uniform_real_distribution<double>(-1, 1)(random), static_cast<double>(random() % 5));
    const auto add = [](Accumulator& to, const auto& item) {
      to.add(std::get<1>(item), std::get<2>(item), std::get<3>(item));
      to.sum("sum of " + std::get<1>(item), std::get<2>(item));
    };
    Accumulator one;
    for (const auto& item : all) add(one, item);
    const Values expected = one.reduce(thread_communicators(1)[0]);
    std::vector<Values> results(static_cast<std::size_t>(size));
    run_ranks(size, [&](const Communicator& communicator) {
      Accumulator mine;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::get<0>(all[i]) == communicator.rank()) add(mine, all[i]);
        if (i % 13 == 5) mine.reduce(communicator);
      }
      results[static_cast<std::size_t>(communicator.rank())] = mine.reduce(communicator);
    });
    CAPTURE(seed);
    for (const auto& result : results) {
      CHECK(result == results[0]);
      REQUIRE(result.size() == expected.size());
      for (const auto& [name, value] : expected) CHECK(result.at(name) == Approx(value).margin(1e-12));
    }
  }
}

TEST_CASE("a NaN of one rank comes out on all") {
  std::vector<Values> results(2);
  run_ranks(2, [&](const Communicator& communicator) {
    Accumulator accumulator;
    accumulator.add("loss", communicator.rank() == 1 ? std::nan("") : 1);
    accumulator.sum("norm", communicator.rank() == 1 ? std::numeric_limits<double>::infinity() : 1);
    accumulator.add("other", 2);
    results[static_cast<std::size_t>(communicator.rank())] = accumulator.reduce(communicator);
  });
  for (const auto& result : results) {
    CHECK(std::isnan(result.at("loss")));
    CHECK(std::isinf(result.at("norm")));
    CHECK(result.at("other") == 2);
  }
}

TEST_CASE("a committed accumulator goes on in another group") {
  std::string committed;
  run_ranks(3, [&](const Communicator& communicator) {
    Accumulator accumulator;
    accumulator.add("loss", 4, 2);
    accumulator.reduce(communicator);
    if (communicator.rank() == 0) committed = accumulator.state();
    accumulator.add("loss", 1000);  // after the commit: of no account
  });
  std::vector<Values> results(2);
  run_ranks(2, [&](const Communicator& communicator) {
    Accumulator accumulator;
    accumulator.sum("dropped", 1);
    accumulator.restore(committed);
    accumulator.add("loss", 1, 3);
    results[static_cast<std::size_t>(communicator.rank())] = accumulator.reduce(communicator);
    accumulator.clear();
    if (!accumulator.reduce(communicator).empty()) fail(Errc::corrupt, "not cleared");
  });
  for (const auto& result : results) CHECK(result == Values{{"loss", (3 * 8.0 + 2 * 3) / 12}});
}

TEST_CASE("what is not reduced is not committed, and bytes from elsewhere are refused") {
  Accumulator accumulator;
  accumulator.sum("x", 1);
  CHECK_THROWS_WITH(accumulator.state(), ContainsSubstring("reduce() before a commit"));
  accumulator.reduce(thread_communicators(1)[0]);
  const std::string state = accumulator.state();
  for (const auto& bytes : {std::string(), std::string("\xff"), state + "x", state.substr(1), state.substr(0, 5)})
    CHECK_THROWS_AS(accumulator.restore(bytes), Error);
  CHECK(accumulator.values() == Values{{"x", 1}});
  CHECK_THROWS_WITH(accumulator.add("x", 1), "metric x is a sum and a mean");
  CHECK_THROWS_WITH(accumulator.add("y", 1, -1), "metric y has the weight -1");
  CHECK_THROWS_AS(accumulator.add("y", 1, std::nan("")), Error);
}

TEST_CASE("a name that is a sum here and a mean there is refused on all ranks, which keep what they had") {
  std::vector<std::string> told(2);
  std::vector<Values> after(2);
  run_ranks(2, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    Accumulator accumulator;
    accumulator.sum("good", 1);
    accumulator.reduce(communicator);
    if (rank == 0)
      accumulator.sum("x", 1);
    else
      accumulator.add("x", 1);
    try {
      accumulator.reduce(communicator);
    } catch (const Error& e) { told[rank] = e.what(); }
    after[rank] = accumulator.values();
  });
  for (const auto& text : told) CHECK(text == "metric x is a sum on one rank and a mean on another");
  for (const auto& values : after) CHECK(values == Values{{"good", 2}});
}

}  // namespace
