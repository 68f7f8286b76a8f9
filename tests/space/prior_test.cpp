// The user's beliefs about where the best values lie.
#include "support/test.hpp"

#include <hypertune/search/random.hpp>
#include <hypertune/space/space.hpp>

#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

struct Config {
  double lr = 0;
  int layers = 0;
  std::string optimizer;
  bool nesterov = false;
  double momentum = 0;
};

Space<Config> believed() {
  return space<Config>(
      dim("lr", &Config::lr, log_uniform(1e-5, 1e-1)).prior(3e-4),
      dim("layers", &Config::layers, log_int(1, 9)).prior(3, 0.2),
      dim("optimizer", &Config::optimizer, choice<std::string>({"sgd", "adam", "lion"}))
          .prior("adam", 0.6)
          .prior("sgd", 0.3),
      dim("nesterov", &Config::nesterov, boolean()).prior(true).when("optimizer", "sgd"),
      dim("momentum", &Config::momentum, quantized(0, 1, 0.1)).prior(0.9, 0.1).when("optimizer", "sgd"));
}

double log_prior_of_number(const SearchSpace& space, double x) { return space.log_prior(Point{x}); }

}  // namespace

TEST_CASE("a space without priors is indifferent") {
  const SearchSpace space = hypertune::space(dim("x", uniform(0, 1)), dim("c", choice({1, 2, 3})));
  CHECK_FALSE(space.has_prior());
  CHECK(space.log_prior({0.3, 1}) == 0);
  Rng a(1), b(1);
  CHECK(space.sample(a) == space.sample_prior(b));
}

TEST_CASE("a prior is a density over the unit cube: its mean over uniform draws is 1, conditions included") {
  const SearchSpace space = believed();
  REQUIRE(space.has_prior());
  Rng rng(3);
  double sum = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n; ++i) {
    const double log_density = space.log_prior(space.sample(rng));
    REQUIRE(std::isfinite(log_density));
    sum += std::exp(log_density);
  }
  CHECK(sum / n == Approx(1).margin(0.03));
}

TEST_CASE("random search draws by the prior, and evenly without one") {
  const SearchSpace sure = space(dim("x", uniform(0, 1)).prior(0.2, 0.01)), even = space(dim("x", uniform(0, 1)));
  Random searcher;
  const auto near = [&](const SearchSpace& searched) {
    searcher.prepare(searched, {});
    int count = 0;
    for (TrialId trial = 0; trial < 1000; ++trial) {
      Rng rng = derived_rng(1, {static_cast<std::uint64_t>(trial)});
      count += std::fabs(searcher.suggest({.trial = trial, .rng = rng}).point[0] - 0.2) < 0.05;
    }
    return count;
  };
  CHECK(near(sure) > 990);
  CHECK(near(even) == Approx(100).margin(40));
}

TEST_CASE("draws of the prior follow its density") {
  const SearchSpace space = believed();
  // For any event E, P_prior(E) = mean over uniform draws of density × [E].
  const auto events = [&](const Point& p) {
    return std::vector<bool>{p[0] < 1e-3, p[1] == 3, p[1] >= 8,   p[2] == 0,  p[2] == 1,
                             p[2] == 2,   p[3] == 1, p[4] > 0.75, p[4] == 0.3};
  };
  constexpr int n = 200'000;
  Rng rng(4);
  std::vector<double> drawn(9), expected(9);
  for (int i = 0; i < n; ++i) {
    const Point own = space.sample_prior(rng);
    REQUIRE_FALSE(space.invalid(own));
    const auto seen = events(own);
    const Point other = space.sample(rng);
    const auto weighed = events(other);
    const double density = std::exp(space.log_prior(other));
    for (std::size_t e = 0; e < seen.size(); ++e) {
      drawn[e] += seen[e] ? 1.0 / n : 0;
      expected[e] += weighed[e] ? density / n : 0;
    }
  }
  for (std::size_t e = 0; e < drawn.size(); ++e) {
    INFO("event " << e);
    CHECK(drawn[e] == Approx(expected[e]).margin(0.015));
  }
  CHECK(drawn[4] == Approx(0.6).margin(0.01));  // optimizer = adam
  CHECK(drawn[3] == Approx(0.3).margin(0.01));
  CHECK(drawn[6] == Approx(0.3 * 0.8).margin(0.01));  // nesterov: four times as likely as not, where active
}

TEST_CASE("a prior is highest at the value named, on the scale of the domain") {
  const SearchSpace space = hypertune::space(dim("lr", log_uniform(1e-5, 1e-1)).prior(1e-3));
  const double at = log_prior_of_number(space, 1e-3);
  CHECK(at > 0);
  CHECK(at > log_prior_of_number(space, 1e-2));
  CHECK(log_prior_of_number(space, 1e-2) == Approx(log_prior_of_number(space, 1e-4)));  // logarithmic
  CHECK(space.prior_center(0) == Approx(0.5));
  const SearchSpace sure = hypertune::space(dim("lr", log_uniform(1e-5, 1e-1)).prior(1e-3, 0.05));
  CHECK(log_prior_of_number(sure, 1e-3) > at);
  CHECK(log_prior_of_number(sure, 1e-5) < log_prior_of_number(space, 1e-5));
  const SearchSpace extreme = hypertune::space(dim("x", uniform(0, 1)).prior(1.0, 0.001));
  CHECK(std::isfinite(log_prior_of_number(extreme, 0)));
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) REQUIRE(extreme.sample_prior(rng)[0] > 0.99);
}

TEST_CASE("priors outlive nesting and go where a parameter is fixed") {
  struct Outer {
    Config inner;
  };
  const auto outer = space<Outer>(nested("inner", &Outer::inner, believed()));
  CHECK(outer.search_space().has_prior());
  CHECK(outer.search_space().prior_center(*outer.search_space().index_of("inner.lr")));
  const auto one = hypertune::space(dim("a", uniform(0, 1)).prior(0.5), dim("b", uniform(0, 1)));
  CHECK(one.search_space().has_prior());
  CHECK_FALSE(one.fix("a", 0.5).search_space().has_prior());
}

TEST_CASE("draws of the prior meet constraints") {
  const SearchSpace space =
      hypertune::space(dim("a", uniform(0, 1)).prior(0.9), dim("b", uniform(0, 1)).prior(0.9))
          .constraint("a + b <= 1", [](const Params& p) { return p.get<double>("a") + p.get<double>("b") <= 1; });
  Rng rng(1);
  for (int i = 0; i < 100; ++i) CHECK(space.feasible(space.sample_prior(rng)));
}

TEST_CASE("a mistaken prior is an error that names the parameter") {
  const auto message = [](const auto& dimension) {
    try {
      hypertune::space(dimension);
    } catch (const Error& e) {
      CHECK(e.code() == Errc::space);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(message(dim("lr", uniform(0, 1)).prior(2)),
             ContainsSubstring("'lr'") && ContainsSubstring("its prior is 2, which it can never be"));
  CHECK_THAT(message(dim("lr", uniform(0, 1)).prior("fast")),
             ContainsSubstring("'lr'") && ContainsSubstring("must be a number in [0, 1]"));
  CHECK_THAT(message(dim("lr", uniform(0, 1)).prior(0.5, -1)),
             ContainsSubstring("'lr'") && ContainsSubstring("spread of its prior is -1"));
  CHECK_THAT(message(dim("lr", uniform(0, 1)).prior(0.5, std::nan(""))),
             ContainsSubstring("spread of its prior is nan"));
  CHECK_THAT(message(dim("lr", uniform(0, 1)).prior(0.5).prior(0.6)), ContainsSubstring("it has 2 priors"));
  CHECK_THAT(message(dim("opt", choice<std::string>({"sgd", "adam"})).prior("adm")),
             ContainsSubstring("'opt'") && ContainsSubstring("sgd, adam"));
  CHECK_THAT(message(dim("opt", choice<std::string>({"sgd", "adam"})).prior("adam", 1.5)),
             ContainsSubstring("must be a probability"));
  CHECK_THAT(message(dim("opt", choice<std::string>({"sgd", "adam"})).prior("adam", 1)),
             ContainsSubstring("leaves nothing"));
  CHECK_THAT(message(dim("opt", choice<std::string>({"sgd", "adam"})).prior("adam", 0.5).prior("sgd", 0.2)),
             ContainsSubstring("add up to 0.7") && ContainsSubstring("must add up to 1"));
  CHECK_THAT(message(dim("opt", choice<std::string>({"sgd", "adam"})).prior("adam").prior("adam")),
             ContainsSubstring("given twice"));
  CHECK_THAT(message(dim("depth", grid({1, 2, 3})).prior(2)),
             ContainsSubstring("'depth'") && ContainsSubstring("grid"));
  CHECK_THAT(message(dim("epochs", constant(3)).prior(3)),
             ContainsSubstring("'epochs'") && ContainsSubstring("constant"));
}
