// The quadratic that finds the last digits of a minimum.
#include "minimise.hpp"
#include "support/test.hpp"

#include <hypertune/search/detail/gp/polish.hpp>
#include <hypertune/search/gaussian_process.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#if __has_include(<Eigen/Dense>)
#include <Eigen/Dense>
#endif

using namespace hypertune;
using namespace hypertune::detail;
using namespace hypertune::detail::gp;
using hypertune_test::minimise;
using hypertune_test::unit_cube;

namespace {

double square(double x) { return x * x; }

/// A history of trials at points of the unit cube around `center`, as far as `radius` from it.
struct Trials {
  SearchSpace space;
  Encoding encoding{space};
  History history{};
  std::size_t best = 0;

  void add(const Point& point, double loss) {
    const auto trial = static_cast<TrialId>(history.started);
    const double losses[] = {loss};
    history.observe({.kind = Observation::Kind::started, .trial = trial, .point = point}, encoding, 1);
    history.observe({.kind = Observation::Kind::ended,
                     .trial = trial,
                     .point = point,
                     .steps = 1,
                     .losses = losses,
                     .state = TrialState::completed},
                    encoding, 1);
    if (loss < history.ended[best].standing()) best = history.ended.size() - 1;
  }
  void spread(const std::function<double(const Point&)>& f, const Point& center, double radius, int count) {
    Rng rng(7);
    for (int i = 0; i < count; ++i) {
      Point point = center;
      for (double& x : point) x = std::clamp(x + radius * (2 * uniform01(rng) - 1), 0.0, 1.0);
      add(point, f(point));
    }
  }
  std::optional<std::vector<double>> polish() const { return gp::polish(history, 0, encoding, best); }
};

}  // namespace

#if __has_include(<Eigen/Dense>)
TEST_CASE("least squares agree with Eigen, also where columns depend on each other") {
  Rng rng(11);
  for (int round = 0; round < 100; ++round) {
    const std::size_t cols = 1 + rng() % 12, rows = cols + rng() % 10;
    const bool dependent = cols > 2 && round % 3 == 0;
    Eigen::MatrixXd a(rows, cols);
    Eigen::VectorXd y(rows);
    for (auto& x : a.reshaped()) x = uniform01(rng) - 0.5;
    for (auto& x : y) x = uniform01(rng) - 0.5;
    if (dependent) a.col(2) = a.col(0) - 2 * a.col(1);
    Matrix ours(rows, cols);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j) ours(i, j) = a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
    const auto found = least_squares(ours, std::vector<double>(y.begin(), y.end()));
    const Eigen::VectorXd c = Eigen::Map<const Eigen::VectorXd>(found.data(), static_cast<Eigen::Index>(cols));
    const Eigen::VectorXd theirs = a.jacobiSvd(Eigen::ComputeThinU | Eigen::ComputeThinV).solve(y);
    INFO(rows << " rows, " << cols << " columns" << (dependent ? ", dependent" : ""));
    CHECK((a * c - y).norm() == Approx((a * theirs - y).norm()).margin(1e-12));
    if (dependent)
      CHECK(c(2) == 0);
    else
      CHECK((c - theirs).norm() < 1e-8 * (1 + theirs.norm()));
  }
}
#endif

TEST_CASE("the minimum of a quadratic is found at once, also at a bound") {
  const auto f = [](const Point& p) {
    return 3 + square(p[0] - 0.43) + 4 * square(p[1] - 0.61 + 0.3 * (p[0] - 0.43)) + 2 * square(p[2] - 1.2);
  };
  Trials trials{unit_cube(3)};
  CHECK_FALSE(trials.history.ended.size() > 0);
  trials.spread(f, {0.4, 0.6, 0.98}, 0.05, 20);
  const auto found = trials.polish();
  REQUIRE(found);
  CHECK((*found)[0] == Approx(0.43).epsilon(1e-6));
  CHECK((*found)[1] == Approx(0.61).epsilon(1e-6));
  CHECK((*found)[2] == 1);
  trials.add(*found, f(*found));
  CHECK_FALSE(trials.polish());  // nothing is to be gained any more
}

TEST_CASE("no step leaves what is known, and none is taken where too little is") {
  const auto slope = [](const Point& p) { return p[0] - 2 * p[1]; };
  Trials trials{unit_cube(2)};
  trials.spread(slope, {0.5, 0.5}, 0.1, 7);
  CHECK_FALSE(trials.polish());
  trials.spread(slope, {0.5, 0.5}, 0.1, 1);
  const auto found = trials.polish();
  REQUIRE(found);
  const auto& best = trials.history.ended[trials.best].features;
  for (std::size_t k = 0; k < 2; ++k) CHECK(std::fabs((*found)[k] - best[k]) <= 0.2);
  CHECK(slope(*found) < slope(best));
  Trials flat{unit_cube(2)};
  flat.spread([](const Point&) { return 1.0; }, {0.5, 0.5}, 0.1, 20);
  CHECK_FALSE(flat.polish());
  Trials same{unit_cube(2)};
  for (int i = 0; i < 20; ++i) same.add({0.5, 0.5}, i);
  CHECK_FALSE(same.polish());
}

TEST_CASE("what is discrete stays as it is, and trials of other branches and failed ones do not count") {
  Trials trials{Space<>(space(dim("x", uniform(0, 1)), dim("kind", choice({"a", "b"})), dim("n", integer(1, 9)),
                              dim("y", uniform(0.0, 1.0)).when("kind", "b")))};
  const auto f = [](const Point& p) { return square(p[0] - 0.3) + (p[1] == 0 ? 0 : 1 + square(p[3] - 0.5)) + p[2]; };
  const double inactive = std::numeric_limits<double>::quiet_NaN();
  Rng rng(3);
  for (int i = 0; i < 30; ++i) {
    const Point b{0.2 + 0.3 * uniform01(rng), 1, 1, uniform01(rng)}, far{uniform01(rng), 0, 5, inactive};
    trials.add(b, f(b));
    trials.add(far, f(far));
  }
  for (const double x : {0.25, 0.27, 0.4}) trials.add({x, 0, 1, inactive}, f({x, 0, 1, inactive}));
  trials.add({0.26, 0, 1, inactive}, worst_loss);
  CHECK_FALSE(trials.polish());
  trials.add({0.35, 0, 1, inactive}, f({0.35, 0, 1, inactive}));
  const auto found = trials.polish();
  REQUIRE(found);
  const auto& best = trials.history.ended[trials.best].features;
  CHECK((*found)[0] == Approx(0.3).epsilon(1e-9));
  for (std::size_t k = 1; k < best.size(); ++k) CHECK((*found)[k] == best[k]);
}

TEST_CASE("a Gaussian process finds a smooth minimum to the last digits") {
  const auto branin = [](const Point& p) {
    constexpr double pi = std::numbers::pi;
    const double x = 15 * p[0] - 5, y = 15 * p[1];
    return square(y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6) + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
  };
  for (const std::uint64_t seed : {1, 2, 3}) {
    GaussianProcess gp;
    const auto run = minimise(gp, unit_cube(2), branin, 100, seed);
    CHECK(run.best() - 0.39788735772973816 < 1e-13);
  }
}
