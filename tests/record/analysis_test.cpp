#include "support/test.hpp"

#include <hypertune/record/analysis.hpp>

#include <cmath>
#include <ctime>
#include <limits>
#include <random>

namespace ht = hypertune;
namespace {

using Losses = std::vector<std::vector<double>>;
using Indices = std::vector<std::size_t>;
constexpr double missing = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Losses random_losses(std::mt19937_64& random, std::size_t n, std::size_t k, int levels) {
  Losses out(n, std::vector<double>(k));
  for (auto& loss : out)
    for (double& x : loss)
      x = levels > 0 ? static_cast<double>(random() % static_cast<unsigned>(levels))
                     : static_cast<double>(random() % 1000003) / 1000003;
  return out;
}

// The definition, pair by pair.
Indices front_by_definition(const Losses& losses) {
  Indices front;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    bool good = std::none_of(losses[i].begin(), losses[i].end(), [](double x) { return std::isnan(x); });
    for (const auto& other : losses) {
      bool all = true, one = false;
      for (std::size_t d = 0; d < other.size(); ++d) {
        all = all && other[d] <= losses[i][d];
        one = one || other[d] < losses[i][d];
      }
      good = good && !(all && one);
    }
    if (good) front.push_back(i);
  }
  return front;
}

// f over random points of the unit cube.
template <class F>
std::vector<double> shares(std::size_t n, std::size_t dimensions, F f, ht::FanovaOptions options = {}) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform;
  Losses units(n, std::vector<double>(dimensions));
  std::vector<double> losses;
  for (auto& unit : units) {
    for (double& x : unit) x = uniform(random);
    losses.push_back(f(unit));
  }
  return ht::fanova(units, losses, options);
}

ht::Results experiment(std::vector<ht::Objective> objectives,
                       const std::vector<std::pair<ht::Params, ht::Metrics>>& trials) {
  ht::Results results;
  std::int64_t n = 0;
  const auto add = [&](ht::record::Any what) {
    ++n;
    results.add({n, static_cast<double>(n), std::move(what)});
  };
  add(ht::record::ExperimentStarted{"x", std::move(objectives), "", "random", "fifo", "threads", 0, 1, false});
  ht::TrialId id = 0;
  for (const auto& [params, metrics] : trials) {
    ht::Point point;
    for (const auto& [name, value] : params)
      point.push_back(std::holds_alternative<double>(value) ? std::get<double>(value) : 0);
    add(ht::record::TrialCreated{id, point, params, false});
    if (!metrics.empty()) add(ht::record::TrialReported{id, 0, 0, metrics});
    add(ht::record::TrialEnded{id, metrics.empty() ? ht::TrialState::failed : ht::TrialState::completed, std::nullopt});
    ++id;
  }
  return results;
}

}  // namespace

TEST_CASE("the Pareto front is what its definition says") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    auto losses = random_losses(random, random() % 40, 1 + random() % 4, round % 3 == 0 ? 0 : 4);
    for (auto& loss : losses)
      if (random() % 10 == 0) loss[random() % loss.size()] = random() % 2 == 0 ? missing : infinity;
    REQUIRE(ht::pareto_front(losses) == front_by_definition(losses));
  }
  CHECK(ht::pareto_front(Losses{}).empty());
  CHECK(ht::pareto_front(Losses{{1, 2}, {1, 2}, {2, 1}, {2, 2}, {missing, 0}}) == Indices{0, 1, 2});
  CHECK_THROWS_WITH(ht::pareto_front(Losses{{1, 2}, {1}}), ContainsSubstring("objectives"));
}

TEST_CASE("the Pareto front of many results is quick") {
  std::mt19937_64 random(3);
  const auto losses = random_losses(random, 200'000, 2, 0);
  const auto begin = std::clock();
  CHECK(!ht::pareto_front(losses).empty());
  CHECK(std::clock() - begin < 20 * CLOCKS_PER_SEC);  // processor time
}

TEST_CASE("the hypervolume is the count of the cells that are dominated") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 120; ++round) {
    const std::size_t k = 1 + random() % 4;
    const auto losses = random_losses(random, random() % 12, k, 6);
    const std::vector<double> reference(k, 5.0);
    double cells = 0;
    for (std::size_t cell = 0; cell < static_cast<std::size_t>(std::pow(5, k) + 0.5); ++cell) {
      std::vector<double> corner;
      for (std::size_t d = 0, rest = cell; d < k; ++d, rest /= 5) corner.push_back(static_cast<double>(rest % 5));
      cells += std::any_of(losses.begin(), losses.end(),
                           [&](const auto& l) { return ht::detail::weakly_dominates(l, corner); });
    }
    REQUIRE(ht::hypervolume(losses, reference) == Approx(cells));
  }
  const std::vector<double> reference{1, 1, 1};
  CHECK(ht::hypervolume(Losses{}, reference) == 0);
  CHECK(ht::hypervolume(Losses{{0.5, 0.5, 0.5}, {missing, 0, 0}, {0, 0, 2}}, reference) == Approx(0.125));
  CHECK_THROWS_WITH(ht::hypervolume(Losses{{1, 2}}, reference), ContainsSubstring("reference point 3"));
}

TEST_CASE("best so far never rises, and NaN is no result") {
  const std::vector<double> losses{missing, 3, infinity, 1, 2, missing, 0.5};
  CHECK(ht::best_so_far(std::span<const double>(losses)) == std::vector<double>{infinity, 3, 3, 1, 1, 1, 0.5});
}

TEST_CASE("fANOVA finds the shares of additive functions") {
  // Var(a x) = a²/12: 16 : 4 : 1 : 0
  const auto linear = shares(1500, 4, [](const auto& x) { return 4 * x[0] + 2 * x[1] + x[2]; });
  CHECK(linear[0] == Approx(16.0 / 21).margin(0.04));
  CHECK(linear[1] == Approx(4.0 / 21).margin(0.04));
  CHECK(linear[2] == Approx(1.0 / 21).margin(0.03));
  CHECK(linear[3] < 0.01);
  // Var(x²) = 4/45, Var(x) = 1/12
  const auto square = shares(1500, 2, [](const auto& x) { return x[0] * x[0] + x[1]; });
  CHECK(square[0] == Approx((4.0 / 45) / (4.0 / 45 + 1.0 / 12)).margin(0.05));
  CHECK(square[0] + square[1] == Approx(1).margin(0.05));
}

TEST_CASE("fANOVA leaves to interactions what is theirs") {
  // (x - 1/2)(y - 1/2): neither explains anything alone.
  const auto product = shares(2000, 2, [](const auto& x) { return (x[0] - 0.5) * (x[1] - 0.5); });
  CHECK(product[0] < 0.15);
  CHECK(product[1] < 0.15);
}

TEST_CASE("fANOVA: a conditional parameter has the share of the cases where it counts, its parent keeps its own") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform;
  Losses units;
  std::vector<double> losses;
  for (int i = 0; i < 2000; ++i) {
    const double parent = uniform(random), child = uniform(random);
    const bool active = parent < 0.5;
    units.push_back({active ? 0.25 : 0.75, active ? child : missing});
    losses.push_back(active ? 2 * child : 1.0);  // the parent has no effect of its own on the mean
  }
  const auto without = ht::fanova(units, losses);
  CHECK(without[0] < 0.05);
  CHECK(without[1] == Approx(0.5).margin(0.08));  // 1/4 of Var(2x) against 1/2 of it
  for (std::size_t i = 0; i < units.size(); ++i) losses[i] = std::isnan(units[i][1]) ? 3.0 : 0.0;
  const auto only_parent = ht::fanova(units, losses);
  CHECK(only_parent[0] > 0.98);
  CHECK(only_parent[1] < 0.01);
}

TEST_CASE("fANOVA is deterministic and poisoned by nothing") {
  const auto f = [](const std::vector<double>& x) { return x[0] * x[0] + 0.01 * x[1]; };
  const auto hostile = [&](const std::vector<double>& x) {
    return x[2] < 0.02 ? missing : x[2] < 0.04 ? infinity : x[2] < 0.05 ? 1e300 : f(x);
  };
  CHECK(shares(300, 3, hostile) == shares(300, 3, hostile));
  CHECK(shares(300, 3, f, {.seed = 1}) != shares(300, 3, f, {.seed = 2}));
  for (const double share : shares(300, 3, hostile)) CHECK((share >= 0 && share <= 1));
  const auto clean = shares(300, 3, f);
  CHECK(clean[0] > 0.9);
  CHECK(clean[0] > 10 * clean[1]);
  const std::vector<double> nothing(3, 0.0);
  CHECK(shares(300, 3, [](const auto&) { return 1.5; }) == nothing);
  CHECK(shares(300, 3, [](const auto&) { return missing; }) == nothing);
  CHECK(shares(3, 3, f) == nothing);
  CHECK(ht::fanova({}, {}).empty());
  const std::vector<double> one{1};
  CHECK_THROWS_WITH(ht::fanova({}, one), ContainsSubstring("0 points and 1 losses"));
}

TEST_CASE("importance of 1,000 trials with 20 parameters is quick") {
  const auto begin = std::clock();
  const auto found = shares(1000, 20, [](const auto& x) { return x[3] + 0.5 * x[7]; });
  const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(found[3] > found[7]);
  CHECK(found[7] > 0.1);
  INFO(took << " s of processor time");
  CHECK(took < 20);  // without optimisation
}

TEST_CASE("importance is told by name, from the space or from the configurations alone") {
  const ht::SearchSpace space =
      ht::space(ht::dim("lr", ht::log_uniform(1e-4, 1e-1)), ht::dim("width", ht::uniform(0, 10)));
  std::mt19937_64 random(6);
  std::vector<std::pair<ht::Params, ht::Metrics>> trials;
  for (int i = 0; i < 400; ++i) {
    ht::Rng rng = ht::derived_rng(1, {static_cast<std::uint64_t>(i)});
    const ht::Params params = space.params(space.sample(rng));
    const double lr = std::log10(params.get<double>("lr"));
    if (i % 50 == 0)
      trials.emplace_back(params, ht::Metrics{});
    else
      trials.emplace_back(params, ht::Metrics{{"accuracy", -(lr + 2) * (lr + 2) + 0.01 * params.get<double>("width")}});
  }
  const ht::Results results = experiment({ht::maximize("accuracy")}, trials);
  for (const auto& found : {ht::importance(results, space), ht::importance(results)}) {
    REQUIRE(found.size() == 2);
    CHECK(found[0].name == "lr");
    CHECK(found[0].share > 0.8);
    CHECK(found[0].share + found[1].share == Approx(1));
  }
  CHECK_THROWS_WITH(ht::importance(ht::Results()), ContainsSubstring("has no metric"));
}

TEST_CASE("importance of options and flags that only some trials have") {
  std::vector<ht::Params> configurations;
  std::vector<double> losses;
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const bool adam = random() % 2 == 0;
    ht::Params params{{"optimizer", std::string(adam ? "adam" : "sgd")}, {"amp", random() % 2 == 0}};
    if (!adam) params.set("momentum", static_cast<double>(random() % 100) / 100);
    losses.push_back(adam ? 0.0 : 1.0);
    configurations.push_back(params);
  }
  const auto found = ht::importance(configurations, losses);
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "optimizer");
  CHECK(found[0].share > 0.95);
}

TEST_CASE("the Pareto front and the curve of an experiment") {
  const ht::Params none;
  const auto results =
      experiment({ht::maximize("accuracy"), ht::minimize("latency")}, {{none, {{"accuracy", 0.9}, {"latency", 5}}},
                                                                       {none, {{"accuracy", 0.8}, {"latency", 6}}},
                                                                       {none, {{"accuracy", 0.7}, {"latency", 1}}},
                                                                       {none, {}},
                                                                       {none, {{"accuracy", missing}, {"latency", 0}}},
                                                                       {none, {{"accuracy", 0.95}}}});
  CHECK(ht::pareto_front(results) == std::vector<ht::TrialId>{0, 2});
  // From accuracy 0.5 and latency 10: 0.4 wide from 5 on, 0.2 wide between 1 and 5.
  CHECK(ht::hypervolume(results, std::vector{0.5, 10.0}) == Approx(0.4 * 5 + 0.2 * 4));
  CHECK_THROWS_WITH(ht::hypervolume(results, std::vector{0.5}), ContainsSubstring("2 objectives"));
  const auto curve = ht::best_so_far(results);
  CHECK(curve == std::vector<double>{0.9, 0.9, 0.9, 0.9, 0.9, 0.95});
}

TEST_CASE("the winner of a race has had all instances, whatever others had on few") {
  auto results = experiment({ht::minimize("cost")}, {{{}, {{"cost", 1.0}}},  // dropped after one easy instance
                                                     {{}, {{"cost", 2.0}}},
                                                     {{}, {{"cost", 1.5}}},
                                                     {{}, {}}});
  std::int64_t n = 100;
  for (const auto& [trial, mean] : {std::pair{1, 5.0}, std::pair{2, 4.0}})
    results.add({++n, 1.0 * static_cast<double>(n), ht::record::TrialReported{trial, 0, 1, {{"cost", mean}}}});
  CHECK(results.best().trial == 0);
  CHECK(ht::race_winner(results) == 2);
  CHECK(ht::race_winner(experiment({ht::minimize("cost")}, {{{}, {}}})) == std::nullopt);
}
