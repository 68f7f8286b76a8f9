#include "support/test.hpp"

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/search/detail/gp/acquisition.hpp>
#include <hypertune/search/detail/gp/fit.hpp>
#include <hypertune/search/detail/gp/maximise.hpp>
#include <hypertune/search/detail/gp/polish.hpp>
#include <hypertune/search/detail/gp/quadratic.hpp>
#include <hypertune/search/detail/gp/state.hpp>
#include <hypertune/search/detail/gp/transform.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#if __has_include(<Eigen/Dense>)
#include <Eigen/Dense>
#endif

using namespace hypertune;
using namespace hypertune::detail;
using namespace hypertune::detail::gp;

namespace {

/// Some numeric features and one of labels.
struct Sample {
  Inputs inputs;
  std::vector<std::vector<double>> points;
  std::vector<double> outputs;
  Hyper hyper;

  Sample(std::uint64_t seed, std::size_t n, std::size_t numeric) {
    Rng rng(seed);
    std::vector<std::uint8_t> kinds(numeric, 0);
    kinds.push_back(1);
    inputs = Inputs(kinds);
    for (std::size_t i = 0; i < n; ++i) {
      points.push_back(point(rng));
      inputs.add(points.back());
      outputs.push_back(std::sin(5 * points.back().front()) + points.back().back() + 0.1 * uniform01(rng));
    }
    for (std::size_t k = 0; k <= numeric; ++k) hyper.log.push_back(-1 + 1.5 * uniform01(rng));
    hyper.log.push_back(0.3);
    hyper.log.push_back(-4);
  }
  void warp(std::uint64_t seed) {
    Rng rng(seed);
    for (std::size_t i = 0; i < 2 * inputs.features(); ++i) hyper.warp.push_back(2 * uniform01(rng) - 1);
  }
  void direct(std::uint64_t seed) {
    Rng rng(seed);
    for (const auto label : inputs.categorical) hyper.direction.push_back(label != 0 ? 0 : 4 * uniform01(rng) - 2);
  }
  std::vector<double> point(Rng& rng) const {
    std::vector<double> p(inputs.features());
    for (double& x : p) x = uniform01(rng);
    p.back() = std::floor(3 * p.back());
    return p;
  }
};

double simpson(const std::function<double(double)>& f, double a, double b) {
  const int n = 20'000;
  double sum = f(a) + f(b);
  for (int i = 1; i < n; ++i) sum += f(a + (b - a) * i / n) * (i % 2 == 1 ? 4 : 2);
  return sum * (b - a) / n / 3;
}

struct Outcome {
  double loss = 0;
  std::vector<double> constraints{};
};

/// Runs trials one after the other and returns their points.
template <class Function>
std::vector<Point> run(AnySearcher searcher, const SearchSpace& space, int trials, std::uint64_t seed, Function f,
                       std::size_t constraints = 0) {
  searcher.prepare(space, {.constraints = constraints, .samples = trials, .seed = seed});
  std::vector<Point> points;
  for (TrialId t = 0; t < trials; ++t) {
    Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(t)});
    const Suggestion s = searcher.suggest({.trial = t, .rng = rng});
    REQUIRE(s.kind == Suggestion::Kind::point);
    REQUIRE_FALSE(space.invalid(s.point));
    REQUIRE(space.feasible(s.point));
    points.push_back(s.point);
    const Outcome o = f(s.point);
    searcher.observe({.kind = Observation::Kind::started, .trial = t, .point = s.point});
    searcher.observe({.kind = Observation::Kind::ended,
                      .trial = t,
                      .point = s.point,
                      .steps = 1,
                      .losses = {&o.loss, 1},
                      .constraints = o.constraints,
                      .state = TrialState::completed});
  }
  return points;
}
template <class Function>
double best(const std::vector<Point>& points, Function f) {
  double least = worst_loss;
  for (const Point& p : points) least = std::min(least, f(p));
  return least;
}
double square(double x) { return x * x; }

SearchSpace cube(int dimensions, double lower, double upper) {
  std::vector<Dim<Params>> dims;
  for (int i = 0; i < dimensions; ++i) dims.push_back(dim("x" + std::to_string(i), uniform(lower, upper)));
  return Space<>(dims);
}

}  // namespace

TEST_CASE("minimise() finds minima inside a box and on its walls") {
  const auto rosenbrock = [](const std::vector<double>& x, std::vector<double>& g) {
    const double a = x[1] - x[0] * x[0], b = 1 - x[0];
    g[0] = -400 * x[0] * a - 2 * b;
    g[1] = 200 * a;
    return 100 * a * a + b * b;
  };
  const std::vector<double> lower = {-2, -2}, upper = {2, 2}, tight = {0.5, 2};
  std::vector<double> x = {-1.2, 1};
  REQUIRE(minimise(rosenbrock, x, lower, upper, {.evaluations = 200}) < 1e-8);
  REQUIRE(x[0] == Approx(1).margin(1e-3));
  x = {-1.2, 1};
  minimise(rosenbrock, x, lower, tight, {.evaluations = 200});
  REQUIRE(x[0] == 0.5);
  REQUIRE(x[1] == Approx(0.25).margin(1e-4));
  x = {-1.2, 1};
  REQUIRE(minimise(rosenbrock, x, {}, {}, {.evaluations = 200}) < 1e-8);
  const auto wall = [](const std::vector<double>& p, std::vector<double>& g) {  // no value beyond 0.3
    g[0] = -1;
    return p[0] > 0.3 ? std::numeric_limits<double>::quiet_NaN() : -p[0];
  };
  x = {0};
  minimise(wall, x, {}, {}, {.evaluations = 100});
  REQUIRE(x[0] == Approx(0.3).margin(0.05));
}

TEST_CASE("the gradients of a marginal likelihood and of its prior are those of finite differences") {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
    INFO("seed " << seed);
    Sample s(seed, 17, 3);
    if (seed > 3 && seed < 8) s.warp(seed);
    if (seed > 5) s.direct(seed);
    if (seed > 6 || seed == 3) s.hyper.log_trend = -0.4;
    const HyperPrior prior(s.inputs.features());
    std::vector<double> gradient;
    Model::loss(s.inputs, s.outputs, s.hyper, &gradient);
    prior.add(s.hyper, &gradient);
    const std::vector<double> all = s.hyper.flat();
    REQUIRE(gradient.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double step = 1e-5;
      const auto at = [&](double change) {
        std::vector<double> changed = all;
        changed[i] += change;
        const Hyper h = s.hyper.from_flat(changed);
        return Model::loss(s.inputs, s.outputs, h, nullptr) + prior.add(h, nullptr);
      };
      REQUIRE(gradient[i] == Approx((at(step) - at(-step)) / (2 * step)).epsilon(1e-5).margin(1e-6));
    }
  }
}

TEST_CASE("a warped input goes from 0 to 1, and its derivatives are those of finite differences") {
  for (const double log_a : {-1.6, -0.3, 0.0, 0.7, 1.6})
    for (const double log_b : {-1.6, 0.0, 0.4, 1.6}) {
      double before = -1;
      for (const double x : {0.0, 1e-3, 0.2, 0.5, 0.9, 1.0}) {
        INFO("x " << x << ", log a " << log_a << ", log b " << log_b);
        const Warped w(x, log_a, log_b);
        REQUIRE(w.value > before);
        REQUIRE((w.value >= 0 && w.value <= 1));
        if (log_a == 0 && log_b == 0) REQUIRE(w.value == Approx(x).margin(2e-5));
        before = w.value;
        REQUIRE((std::isfinite(w.slope) && std::isfinite(w.by_log_a) && std::isfinite(w.by_log_b)));
        const double step = 1e-6;
        const auto difference = [&](const Warped& after, const Warped& earlier) {
          return Approx((after.value - earlier.value) / (2 * step)).epsilon(1e-4).margin(1e-7);
        };
        if (x > 0 && x < 1)
          REQUIRE(w.slope == difference(Warped(x + step, log_a, log_b), Warped(x - step, log_a, log_b)));
        REQUIRE(w.by_log_a == difference(Warped(x, log_a + step, log_b), Warped(x, log_a - step, log_b)));
        REQUIRE(w.by_log_b == difference(Warped(x, log_a, log_b + step), Warped(x, log_a, log_b - step)));
      }
    }
}

TEST_CASE("a model of warped inputs is one of the inputs warped beforehand") {
  Sample s(4, 15, 2);
  s.warp(3);
  const auto bent = [&](std::vector<double> x) {
    for (std::size_t k = 0; k + 1 < x.size(); ++k)
      x[k] = Warped(x[k], s.hyper.warp[2 * k], s.hyper.warp[2 * k + 1]).value;
    return x;
  };
  Inputs beforehand(s.inputs.categorical);
  for (const auto& point : s.points) beforehand.add(bent(point));
  auto own = Model::of(s.inputs, s.outputs, s.hyper);
  auto plain = Model::of(beforehand, s.outputs, Hyper{s.hyper.log});
  REQUIRE((own && plain));
  Rng rng(6);
  const auto added = s.point(rng);
  REQUIRE((own->append(added, 0.3) && plain->append(bent(added), 0.3)));
  for (int i = 0; i < 10; ++i) {
    const auto x = s.point(rng);
    Posterior a, b;
    own->posterior(x, a, true);
    plain->posterior(bent(x), b, false);
    REQUIRE(a.mean == Approx(b.mean).margin(1e-9));
    REQUIRE(a.variance == Approx(b.variance).margin(1e-9));
    Matrix row(1, x.size());
    std::copy(x.begin(), x.end(), row.row(0));
    std::vector<double> means, variances;
    own->posterior(row, 1, means, variances);
    REQUIRE(means[0] == Approx(b.mean).margin(1e-9));
    for (std::size_t k = 0; k + 1 < x.size(); ++k) {
      if (x[k] < 0.02 || x[k] > 0.98) continue;
      const auto mean_at = [&](double at) {
        auto moved = x;
        moved[k] = at;
        Posterior p;
        own->posterior(moved, p, false);
        return std::pair(p.mean, p.variance);
      };
      const double step = 1e-6;
      const auto after = mean_at(x[k] + step), before = mean_at(x[k] - step);
      REQUIRE(a.mean_slope[k] == Approx((after.first - before.first) / (2 * step)).epsilon(1e-3).margin(1e-5));
      REQUIRE(a.variance_slope[k] == Approx((after.second - before.second) / (2 * step)).epsilon(1e-3).margin(1e-5));
    }
  }
}

TEST_CASE("a posterior with a direction, a trend and warped inputs has the slopes of finite differences") {
  for (const bool warped : {false, true})
    for (const bool trend : {false, true}) {
      INFO("warped " << warped << ", trend " << trend);
      Sample s(7, 14, 3);
      s.direct(2);
      if (warped) s.warp(3);
      if (trend) s.hyper.log_trend = 0.5;
      auto model = Model::of(s.inputs, s.outputs, s.hyper);
      REQUIRE(model);
      Rng rng(9);
      REQUIRE(model->append(s.point(rng), 0.2));
      for (int i = 0; i < 10; ++i) {
        std::vector<double> x = s.point(rng);
        for (std::size_t k = 0; k + 1 < x.size(); ++k) x[k] = 0.05 + 0.9 * x[k];
        Posterior at;
        model->posterior(x, at, true);
        Matrix row(1, x.size());
        std::copy(x.begin(), x.end(), row.row(0));
        std::vector<double> means, variances;
        model->posterior(row, 1, means, variances);
        REQUIRE(means[0] == Approx(at.mean).margin(1e-12));
        REQUIRE(variances[0] == Approx(at.variance).margin(1e-12));
        REQUIRE(at.mean_slope.back() == 0);
        for (std::size_t k = 0; k + 1 < x.size(); ++k) {
          const double step = 1e-5;
          Posterior after, before;
          std::vector<double> moved = x;
          moved[k] = x[k] + step;
          model->posterior(moved, after, false);
          moved[k] = x[k] - step;
          model->posterior(moved, before, false);
          REQUIRE(at.mean_slope[k] == Approx((after.mean - before.mean) / (2 * step)).epsilon(1e-4).margin(1e-6));
          REQUIRE(at.variance_slope[k] ==
                  Approx((after.variance - before.variance) / (2 * step)).epsilon(1e-4).margin(1e-6));
        }
      }
    }
}

TEST_CASE("a model with a trend knows a quadratic from a few points more than it has coefficients, and far from them") {
  Inputs inputs(std::vector<std::uint8_t>(3, 0));
  const auto f = [](const std::vector<double>& x) { return square(x[0] + 2 * x[1] - 1) - x[1] * x[2] + x[2]; };
  std::vector<double> outputs;
  Rng rng(1);
  const auto point = [&](double from, double to) {
    std::vector<double> x(3);
    for (double& e : x) e = std::lerp(from, to, uniform01(rng));
    return x;
  };
  for (int i = 0; i < 14; ++i) {
    const auto x = point(0.3, 0.7);
    inputs.add(x);
    outputs.push_back(f(x));
  }
  Hyper hyper{{0, 0, 0, std::log(1e-6), std::log(1e-9)}};
  hyper.log_trend = std::log(100.0);
  const auto model = Model::of(inputs, outputs, hyper);
  REQUIRE(model);
  for (int i = 0; i < 20; ++i) {
    const auto x = point(0, 1);
    Posterior p;
    model->posterior(x, p, false);
    CHECK(p.mean == Approx(f(x)).margin(0.02));
  }
}

TEST_CASE("fits are made at the same numbers, whatever was known, from the last one that stands alone") {
  const auto refit_at = [](std::size_t count) {
    if (count == 4 || count == 32) return Refit::alone;
    return count == 16 ? Refit::afresh : count % 4 == 0 ? Refit::onward : Refit::none;
  };
  using Made = std::vector<std::pair<std::size_t, Refit>>;
  const auto made = [&](std::size_t known, std::size_t count, std::size_t expected) {
    Made result;
    REQUIRE(follow_fits(known, count, refit_at, [&](std::size_t c, Refit kind) { result.emplace_back(c, kind); }) ==
            expected);
    return result;
  };
  const Made to_18 = {{4, Refit::alone}, {8, Refit::onward}, {12, Refit::onward}, {16, Refit::afresh}};
  CHECK(made(0, 18, 16) == to_18);
  CHECK(made(12, 18, 16) == Made(to_18.end() - 1, to_18.end()));
  CHECK(made(16, 18, 16).empty());
  CHECK(made(0, 33, 32) == Made{{32, Refit::alone}});
  CHECK(made(28, 33, 32) == Made{{32, Refit::alone}});
  CHECK(made(0, 37, 36) == Made{{32, Refit::alone}, {36, Refit::onward}});
  CHECK(made(0, 3, 1).empty());
  CHECK(made(0, 0, 0).empty());
}

TEST_CASE("a direction and a trend are learnt where they explain the losses, and only there") {
  const SearchSpace space = cube(4, 0, 1);
  const Encoding encoding(space);
  const auto learnt = [&](auto f, std::size_t count, bool at_once) {
    History history;
    Rng rng(4);
    Learner learner;
    for (TrialId t = 0; t < static_cast<TrialId>(count); ++t) {
      const Point point = space.sample(rng);
      const double loss[] = {f(point)};
      history.observe({.kind = Observation::Kind::started, .trial = t, .point = point}, encoding, 1);
      history.observe({.kind = Observation::Kind::ended,
                       .trial = t,
                       .point = point,
                       .steps = 1,
                       .losses = loss,
                       .state = TrialState::completed},
                      encoding, 1);
      if (!at_once) learner.at({history, encoding}, 0, static_cast<std::size_t>(t) + 1);
    }
    return learner.at({history, encoding}, 0, count);
  };
  const double along[] = {1, -2, 3, 1};
  const auto ridge = [&](const Point& x) {
    double s = 0;
    for (std::size_t k = 0; k < 4; ++k) s += along[k] * x[k];
    return std::sin(3 * s) + 0.1 * x[0];
  };
  const Hyper of_ridge = learnt(ridge, 70, true).hyper;
  REQUIRE(of_ridge.direction.size() == 4);
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    product += of_ridge.direction[k] * along[k];
    square_a += square(of_ridge.direction[k]);
    square_b += square(along[k]);
  }
  CHECK(std::fabs(product) > 0.99 * std::sqrt(square_a * square_b));
  for (const std::size_t count : {70, 131, 259}) {
    const Learnt at_once = learnt(ridge, count, true), on_the_way = learnt(ridge, count, false);
    CHECK(at_once.bend == on_the_way.bend);
    CHECK(at_once.hyper.flat() == on_the_way.hyper.flat());
  }

  const auto bowl = [](const Point& x) { return square(x[0] + x[1] - x[2]) + square(x[1] - x[3]) + 2 * square(x[2]); };
  CHECK(learnt(bowl, 40, true).hyper.log_trend.has_value());
  CHECK(learnt([](const Point& x) { return 3 + 0 * x[0]; }, 40, true).hyper.direction.empty());
  const auto waves = [](const Point& x) { return std::sin(9 * x[0]) + std::cos(7 * x[1]) + std::sin(8 * x[2] * x[2]); };
  const Hyper of_waves = learnt(waves, 40, true).hyper;
  CHECK(of_waves.direction.empty());
  CHECK_FALSE(of_waves.log_trend);
}

TEST_CASE("inputs are warped where a function changes fastest at one end") {
  Inputs inputs(std::vector<std::uint8_t>{0, 0});
  std::vector<double> outputs;
  Rng rng(2);
  for (int i = 0; i < 40; ++i) {
    const double point[] = {uniform01(rng), uniform01(rng)};
    inputs.add(point);
    outputs.push_back(std::sin(12 * std::sqrt(point[0])) + std::sin(3 * point[1]));
  }
  auto starts = Learner::starts(2, 40);
  const auto plain = fit_hyper(inputs, outputs, starts, 60);
  for (Hyper& start : starts) start.warp.assign(4, 0.0);
  const auto warped = fit_hyper(inputs, outputs, starts, 60);
  REQUIRE(plain.hyper.warp.empty());
  REQUIRE(warped.hyper.warp.size() == 4);
  CHECK(warped.loss < plain.loss - 1);
  const auto slope = [&](double x, std::size_t k) {
    return Warped(x, warped.hyper.warp[2 * k], warped.hyper.warp[2 * k + 1]).slope;
  };
  CHECK(slope(0.05, 0) > 1.3 * slope(0.9, 0));
  CHECK(slope(0.1, 1) < 1.5 * slope(0.9, 1));
}

TEST_CASE("what is learnt of a searcher's results has warped inputs where they are needed, and only there") {
  const SearchSpace space = cube(2, 0, 1);
  const Encoding encoding(space);
  for (const bool needed : {true, false}) {
    History history;
    Rng rng(2);
    for (TrialId t = 0; t < 40; ++t) {
      const Point point = space.sample(rng);
      const double loss[] = {std::sin(needed ? 12 * std::sqrt(point[0]) : 7 * point[0]) + std::sin(3 * point[1])};
      history.observe({.kind = Observation::Kind::started, .trial = t, .point = point}, encoding, 1);
      history.observe({.kind = Observation::Kind::ended,
                       .trial = t,
                       .point = point,
                       .steps = 1,
                       .losses = loss,
                       .state = TrialState::completed},
                      encoding, 1);
    }
    Learner learner;
    double most = 0;  // a warp of less changes next to nothing
    for (const double w : learner.at({history, encoding}, 0, 40).hyper.warp) most = std::max(most, std::fabs(w));
    CHECK((needed ? most > 0.4 : most < 0.25));
  }
}

#if __has_include(<Eigen/Dense>)
TEST_CASE("the marginal likelihood and the posterior are those of the textbook") {
  Sample s(4, 23, 4);
  const bool more = GENERATE(false, true);
  if (more) {
    s.direct(8);
    s.hyper.direction.back() = 9;  // of the label: means nothing
    s.hyper.log_trend = 0.6;
  }
  const auto n = static_cast<Eigen::Index>(s.points.size());
  const auto kernel = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double square = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const double d = k + 1 == a.size() ? (a[k] == b[k] ? 0 : 1) : a[k] - b[k];
      square += d * d * std::exp(-2 * s.hyper.log[k]);
    }
    double along = 0, inner = 1;
    for (std::size_t k = 0; more && k + 1 < a.size(); ++k) {
      along += s.hyper.direction[k] * (a[k] - b[k]);
      inner += (2 * a[k] - 1) * (2 * b[k] - 1);
    }
    const double r = std::sqrt(5 * (square + along * along)), average = 1 + 4.0 / 3;
    return std::exp(0.3) * (1 + r + r * r / 3) * std::exp(-r) +
           (more ? std::exp(0.6) * inner * inner / (average * average) : 0);
  };
  Eigen::MatrixXd k(n, n);
  Eigen::VectorXd y(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    y(i) = s.outputs[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < n; ++j)
      k(i, j) = kernel(s.points[static_cast<std::size_t>(i)], s.points[static_cast<std::size_t>(j)]) +
                (i == j ? std::exp(-4.0) : 0);
  }
  const Eigen::MatrixXd inverse = k.inverse();
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(n);
  const double mean = ones.dot(inverse * y) / (1 + ones.dot(inverse * ones));
  const Eigen::VectorXd rest = y - mean * ones;
  const double expected = (rest.dot(inverse * rest) + mean * mean) / 2 + std::log(k.determinant()) / 2;
  REQUIRE(Model::loss(s.inputs, s.outputs, s.hyper, nullptr) == Approx(expected).epsilon(1e-9));

  const auto model = Model::of(s.inputs, s.outputs, s.hyper);
  REQUIRE(model);
  Rng rng(5);
  Matrix points(9, s.inputs.features());
  std::vector<double> means, variances;
  for (std::size_t i = 0; i < points.rows(); ++i) {
    const auto p = s.point(rng);
    std::copy(p.begin(), p.end(), points.row(i));
  }
  model->posterior(points, 9, means, variances);
  for (std::size_t i = 0; i < points.rows(); ++i) {
    const std::vector<double> x(points.row(i), points.row(i) + points.cols());
    Eigen::VectorXd c(n);
    for (Eigen::Index j = 0; j < n; ++j) c(j) = kernel(x, s.points[static_cast<std::size_t>(j)]);
    REQUIRE(means[i] == Approx(mean + c.dot(inverse * rest)).epsilon(1e-9).margin(1e-9));
    REQUIRE(variances[i] == Approx(kernel(x, x) - c.dot(inverse * c)).epsilon(1e-8).margin(1e-9));
    Posterior one;
    model->posterior(x, one, false);
    REQUIRE(one.mean == Approx(means[i]).epsilon(1e-12));
    REQUIRE(one.variance == Approx(variances[i]).epsilon(1e-9));
  }
  const auto fitted = model->fitted();
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    Posterior one;
    model->posterior(s.points[i], one, false);
    REQUIRE(fitted[i] == Approx(one.mean).margin(1e-9));
  }
}
#endif

TEST_CASE("a model to which points are appended is the model of all of them") {
  Sample s(6, 20, 2);
  if (GENERATE(false, true)) {
    s.direct(3);
    s.warp(2);
    s.hyper.log_trend = 0.2;
  }
  Inputs half(s.inputs.categorical);
  for (std::size_t i = 0; i < 10; ++i) half.add(s.points[i]);
  auto grown = Model::of(half, {s.outputs.begin(), s.outputs.begin() + 10}, s.hyper);
  const auto whole = Model::of(s.inputs, s.outputs, s.hyper);
  REQUIRE((grown && whole));
  for (std::size_t i = 10; i < 20; ++i) REQUIRE(grown->append(s.points[i], s.outputs[i]));
  Rng rng(7);
  for (int i = 0; i < 10; ++i) {
    Posterior a, b;
    const auto x = s.point(rng);
    grown->posterior(x, a, false);
    whole->posterior(x, b, false);
    REQUIRE(a.mean == Approx(b.mean).epsilon(1e-9));
    REQUIRE(a.variance == Approx(b.variance).epsilon(1e-9));
  }
}

TEST_CASE("log h and log Phi are those of numeric integration, far into their tails") {
  // With z = -t: h(z) = phi(t) * integral over u > 0 of u exp(-u^2/2 - t u), and Phi(z) the same without the u.
  for (const double t : {-8.0, -2.0, 0.0, 0.5, 1.0, 3.0, 5.9, 6.1, 10.0, 40.0, 1e3, 1e6, 1e9}) {
    const double width = t > 1 ? 60 / t : 40 + 2 * std::fabs(t);
    const double area = simpson([&](double u) { return u * std::exp(-u * u / 2 - t * u); }, 0, width);
    const double mass = simpson([&](double u) { return std::exp(-u * u / 2 - t * u); }, 0, width);
    const double density = -t * t / 2 - 0.5 * std::log(2 * M_PI);
    REQUIRE(LogImprovement(-t).log_h == Approx(density + std::log(area)).epsilon(1e-9).margin(1e-7));
    REQUIRE(LogCdf(-t).value == Approx(density + std::log(mass)).epsilon(1e-9).margin(1e-7));
  }
  for (const double z : {5.0, 1.0, 0.0, -1.0, -5.9, -6.1, -20.0, -1e4}) {
    const double step = 1e-6 * std::max(1.0, std::fabs(z));
    const LogImprovement at(z);
    REQUIRE(at.cdf_ratio ==
            Approx((LogImprovement(z + step).log_h - LogImprovement(z - step).log_h) / (2 * step)).epsilon(1e-6));
    REQUIRE(at.density_ratio == Approx(1 - z * at.cdf_ratio).epsilon(1e-6).margin(1e-6));
    REQUIRE(LogCdf(z).slope ==
            Approx((LogCdf(z + step).value - LogCdf(z - step).value) / (2 * step)).epsilon(1e-6).margin(1e-9));
  }
  REQUIRE(std::isfinite(LogImprovement(-1e150).log_h));
}

TEST_CASE("the slopes of the acquisition are those of finite differences") {
  const SearchSpace s =
      space(dim("a", uniform(0, 1)), dim("b", uniform(0, 1)), dim("c", choice<std::string>({"x", "y"})));
  const Encoding encoding(s);
  const Sample sample(8, 15, 2);
  std::vector<double> other = sample.outputs;
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = sample.points[i][1] - 0.3;
  const auto objective = Model::of(sample.inputs, sample.outputs, sample.hyper);
  const auto constraint = Model::of(sample.inputs, other, sample.hyper);
  REQUIRE((objective && constraint));
  Rng rng(9);
  const Chain one(*objective);
  Chain levels(*constraint);
  levels.add(0.7, *objective, 0.1);
  levels.add(1.3, *constraint, -0.4);
  for (const double target : {2.0, 0.0, -30.0}) {
    for (int i = 0; i < 20; ++i) {
      const Acquisition a{.encoding = &encoding,
                          .objective = i % 2 == 0 ? &one : &levels,
                          .best = target,
                          .constraints = {&*constraint}};
      Candidate c;
      c.unit = {0.1 + 0.8 * uniform01(rng), 0.1 + 0.8 * uniform01(rng), uniform01(rng)};
      REQUIRE(encoding.complete(c, rng));
      std::vector<double> slope;
      const double value = a.evaluate(c, &slope);
      std::vector<Candidate> batch = {c};
      a.evaluate(batch);
      REQUIRE(batch.front().value == Approx(value).epsilon(1e-9));
      for (std::size_t k = 0; k < 2; ++k) {
        const auto at = [&](double change) {
          Candidate moved = c;
          moved.features[k] += change;
          return a.evaluate(moved, nullptr);
        };
        REQUIRE(slope[k] == Approx((at(1e-6) - at(-1e-6)) / 2e-6).epsilon(1e-4).margin(1e-5));
      }
      REQUIRE(slope[2] == 0);
    }
  }
}

TEST_CASE("losses are bent monotonically, whatever their offset and scale") {
  Rng rng(10);
  std::vector<double> losses;
  for (int i = 0; i < 29; ++i) losses.push_back(std::exp(8 * uniform01(rng)));
  losses.push_back(1e9);  // far beyond what is linear
  for (const Bend bend : all_bends) {
    const auto t = transform(losses, bend).values;
    double mean = 0, square_sum = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
      mean += t[i];
      square_sum += t[i] * t[i];
      for (std::size_t j = 0; j < t.size(); ++j)
        if (losses[i] < losses[j]) REQUIRE(t[i] <= t[j]);
    }
    REQUIRE(mean == Approx(0).margin(1e-9));
    REQUIRE(square_sum == Approx(30));
    std::vector<double> moved = losses;
    for (double& y : moved) y = 1000 + 7 * y;
    const auto m = transform(moved, bend);
    for (std::size_t i = 0; i < t.size(); ++i) REQUIRE(m.values[i] == Approx(t[i]).margin(1e-6));
    // So that the bends stay in the same order of evidence, whatever the losses are measured in.
    REQUIRE(m.log_jacobian == Approx(transform(losses, bend).log_jacobian - 30 * std::log(7.0)));
    const double inf = worst_loss;
    const std::vector<std::vector<double>> odd = {{1, 2, inf},   {1, 1, 1},    {inf, inf, 3},  {1e308, -1e308, 0},
                                                  {1e308, 1, 2}, {-inf, 1, 2}, {1, 1, 1, 1, 2}};
    for (const auto& hard : odd) {
      const auto b = transform(hard, bend).values;
      for (const double y : b) REQUIRE(std::isfinite(y));
    }
    const auto failed = transform({1, 2, inf}, bend).values;
    REQUIRE(failed[2] >= failed[1]);
  }
  const auto bent = transform_constraint({-3, 0, 5, 1e300});
  REQUIRE(bent[1] == 0);
  REQUIRE((bent[0] < 0 && bent[2] > 0 && bent[3] > bent[2] && std::isfinite(bent[3])));
}

TEST_CASE("conditions are encoded so that the kernel stays positive definite") {
  const SearchSpace s = space(dim("kind", choice<std::string>({"a", "b"})), dim("x", uniform(0, 1)).when("kind", "a"),
                              dim("n", integer(1, 9)), dim("deep", uniform(0, 1)).when_between("n", 5, 9));
  const Encoding encoding(s);
  REQUIRE(encoding.features() == 5);  // an indicator for "deep", none for "x": its parent is a choice
  Rng rng(11);
  Inputs inputs(encoding.categorical());
  std::vector<double> outputs;
  for (int i = 0; i < 60; ++i) {
    const Point p = s.sample(rng);
    const auto f = encoding.features(p);
    for (const double x : f) REQUIRE(std::isfinite(x));
    REQUIRE(f[4] == (is_active(p[3]) ? 1 : 0));
    inputs.add(f);
    outputs.push_back(uniform01(rng));
  }
  const auto model = Model::of(inputs, outputs, HyperPrior(5).start(5, 1, 1e-6));
  REQUIRE(model);
  for (const auto& d : encoding.dimensions())
    for (std::size_t k = 0; k < d.options; ++k) {
      std::vector<double> unit(s.size(), 0.99);
      unit[d.index] = encoding.unit_of(d, k);
      const Point p = s.from_unit(unit, rng);
      REQUIRE(encoding.option_of(d, p[d.index]) == k);
    }
}

TEST_CASE("gp finds minima that random search does not") {
  struct Case {
    SearchSpace space;
    std::function<double(const Point&)> f;
    double target;
  };
  const std::vector<Case> cases = {
      {cube(2, -5, 15),
       [](const Point& x) {  // Branin
         const double y = x[1], b = 5.1 / (4 * M_PI * M_PI);
         return square(y - b * x[0] * x[0] + 5 / M_PI * x[0] - 6) + 10 * (1 - 1 / (8 * M_PI)) * std::cos(x[0]) + 10 -
                0.397887;
       },
       0.01},
      {cube(5, -3, 8),
       [](const Point& x) {
         double sum = 0;
         for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(i + 1) * square(x[i] - 1.5);
         return sum;
       },
       0.1},
      {space(dim("lr", log_uniform(1e-6, 1.0)), dim("n", integer(1, 100)),
             dim("c", choice<std::string>({"a", "b", "c"}))),
       [](const Point& x) { return square(std::log10(x[0]) + 3) + square((x[1] - 33) / 20) + (x[2] == 1 ? 0.0 : 0.5); },
       0.01},
  };
  for (const auto& c : cases) {
    std::vector<double> ours, random;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto outcome = [&](const Point& p) { return Outcome{c.f(p)}; };
      ours.push_back(best(run(GaussianProcess{}, c.space, 45, seed, outcome), c.f));
      random.push_back(best(run(Random{}, c.space, 45, seed, outcome), c.f));
    }
    std::sort(ours.begin(), ours.end());
    std::sort(random.begin(), random.end());
    REQUIRE(ours[1] < c.target);
    REQUIRE(ours[1] < random[1] / 3);
  }
}

TEST_CASE("gp goes on where constraints leave one point in a hundred") {
  const SearchSpace s =
      space(dim("a", uniform(0, 1)), dim("b", uniform(0, 1))).constraint("a sliver", [](const Params& p) {
        return std::fabs(p.get<double>("a") - p.get<double>("b")) < 0.005;
      });
  const auto f = [](const Point& x) { return square(x[0] - 0.7); };
  REQUIRE(best(run(GaussianProcess{}, s, 20, 1, [&](const Point& p) { return Outcome{f(p)}; }), f) < 1e-3);
}

TEST_CASE("gp learns constraints and stays within them") {
  const SearchSpace s = cube(2, 0, 1);
  const auto violation = [](const Point& x) { return 0.8 - x[0] - x[1] / 4; };  // met in a corner only
  const auto f = [](const Point& x) { return x[0] + x[1]; };                    // least outside of it
  const auto points =
      run(GaussianProcess{}, s, 40, 3, [&](const Point& p) { return Outcome{f(p), {violation(p)}}; }, 1);
  double least = worst_loss;
  int met = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (violation(points[i]) > 0) continue;
    least = std::min(least, f(points[i]));
    met += i >= 20 ? 1 : 0;
  }
  REQUIRE(least < 0.83);  // 0.8 at (0.8, 0)
  REQUIRE(met >= 5);
  // Nothing is known of a constraint that is never reported.
  run(GaussianProcess{}, s, 15, 3, [&](const Point& p) { return Outcome{f(p), {std::nan("")}}; }, 1);
}

TEST_CASE("gp asks pending trials apart, and copes with those that never return") {
  const SearchSpace s = cube(3, 0, 1);
  GaussianProcess gp;
  gp.prepare(s, {.parallelism = 8});
  const auto f = [](const Point& x) {  // near a quadratic, which the model soon takes for certain
    return square(x[0] - 0.4) + square(x[1] - 0.4) + square(x[2] - 0.4) + 0.1 * std::sin(9 * x[0]) * std::sin(7 * x[1]);
  };
  TrialId t = 0;
  const auto next = [&] {
    Rng rng = derived_rng(1, {static_cast<std::uint64_t>(t)});
    Point p = gp.suggest({.trial = t, .rng = rng}).point;
    gp.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    return p;
  };
  for (; t < 20; ++t) {
    const Point p = next();
    const double loss = f(p);
    gp.observe({.kind = Observation::Kind::ended,
                .trial = t,
                .point = p,
                .losses = {&loss, 1},
                .state = TrialState::completed});
  }
  std::vector<Point> pending;
  for (; t < 100; ++t) {
    pending.push_back(next());
    for (std::size_t i = 0; i + 1 < std::min<std::size_t>(pending.size(), 12); ++i) {
      double distance = 0;
      for (std::size_t d = 0; d < 3; ++d) distance += square(pending[i][d] - pending.back()[d]);
      if (pending.size() <= 64) REQUIRE(distance > 1e-10);  // of so many the latest are added
    }
  }
}

TEST_CASE("gp takes a stopped trial for what it is worth") {
  // The loss falls with the steps, to 0.2 times what it starts with: a trial stopped early looks worse than it is.
  const SearchSpace s = cube(2, 0, 1);
  GaussianProcess gp;
  gp.prepare(s, {.samples = 40});
  const auto f = [](const Point& x, int steps) {
    return (0.1 + square(x[0] - 0.3) + square(x[1] - 0.6)) * (0.2 + 0.8 / steps);
  };
  double least = worst_loss;
  for (TrialId t = 0; t < 40; ++t) {
    Rng rng = derived_rng(5, {static_cast<std::uint64_t>(t)});
    const Point p = gp.suggest({.trial = t, .rng = rng}).point;
    gp.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    const bool stopped = t % 3 != 0;
    const int last = stopped ? 3 : 27;
    double loss = 0;
    for (const int step : {1, 3, 9, 27}) {
      if (step > last) break;
      loss = f(p, step);
      gp.observe({.kind = Observation::Kind::report, .trial = t, .point = p, .steps = step, .losses = {&loss, 1}});
    }
    gp.observe({.kind = Observation::Kind::ended,
                .trial = t,
                .point = p,
                .steps = last,
                .losses = {&loss, 1},
                .state = stopped ? TrialState::stopped : TrialState::completed});
    if (t > 20) least = std::min(least, square(p[0] - 0.3) + square(p[1] - 0.6));
  }
  REQUIRE(least < 1e-3);
}

TEST_CASE("gp spreads over the Pareto front of two objectives") {
  const SearchSpace s = cube(2, 0, 1);
  GaussianProcess gp;
  gp.prepare(s, {.objectives = 2, .samples = 60});
  std::vector<Point> points;
  for (TrialId t = 0; t < 60; ++t) {
    Rng rng = derived_rng(6, {static_cast<std::uint64_t>(t)});
    const Point p = gp.suggest({.trial = t, .rng = rng}).point;
    gp.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    const std::vector<double> losses = {square(p[0]) + square(p[1] - 0.5), square(p[0] - 1) + square(p[1] - 0.5)};
    gp.observe(
        {.kind = Observation::Kind::ended, .trial = t, .point = p, .losses = losses, .state = TrialState::completed});
    points.push_back(p);
  }
  std::set<int> tenths;  // the front is the line x1 = 0.5
  for (const Point& p : points)
    if (std::fabs(p[1] - 0.5) < 0.05) tenths.insert(static_cast<int>(p[0] * 10));
  REQUIRE(tenths.size() >= 7);
}

TEST_CASE("gp believes the user until the data say otherwise") {
  const SearchSpace s = space(dim("x", uniform(0, 1)).prior(0.8, 0.05), dim("y", uniform(0, 1)));
  int near_belief = 0;
  const auto points =
      run(GaussianProcess{}, s, 60, 2, [](const Point& p) { return Outcome{square(p[0] - 0.2) + square(p[1] - 0.5)}; });
  for (std::size_t i = 0; i < 12; ++i) near_belief += std::fabs(points[i][0] - 0.8) < 0.15 ? 1 : 0;
  REQUIRE(near_belief >= 5);
  REQUIRE(best(points, [](const Point& p) { return std::fabs(p[0] - 0.2); }) < 0.02);
}

TEST_CASE("gp searches in a region once there is more than it models") {
  const SearchSpace s = cube(4, 0, 1);
  const auto f = [](const Point& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += square(x[i] - 0.37) + 0.002 * (1 - std::cos(20 * (x[i] - 0.37)));
    return sum;
  };
  std::vector<double> least;
  for (const std::uint64_t seed : {1, 2, 3})
    least.push_back(best(
        run(GaussianProcess{.max_observations = 30}, s, 120, seed, [&](const Point& p) { return Outcome{f(p)}; }), f));
  std::sort(least.begin(), least.end());
  REQUIRE(least[1] < 0.01);
  // When the region has collapsed the search begins anew, elsewhere.
  GaussianProcess gp{.max_observations = 20};
  gp.prepare(s, {});
  for (TrialId t = 0; t < 120; ++t) {
    Rng rng = derived_rng(1, {static_cast<std::uint64_t>(t)});
    const Point p = gp.suggest({.trial = t, .rng = rng}).point;
    const double loss = t == 0 ? 0 : 1;
    gp.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    gp.observe({.kind = Observation::Kind::ended,
                .trial = t,
                .point = p,
                .losses = {&loss, 1},
                .state = TrialState::completed});
  }
  REQUIRE(gp.state_->epoch > 0);
  // Results from elsewhere, as known trials are, do not make it collapse.
  GaussianProcess informed;
  informed.prepare(cube(8, 0, 1), {});
  Rng points(1);
  for (TrialId t = 0; t < 1000; ++t) {
    const Point p = cube(8, 0, 1).sample(points);
    const double loss = uniform01(points);
    informed.observe({.kind = Observation::Kind::started, .trial = t, .point = p});
    informed.observe({.kind = Observation::Kind::ended,
                      .trial = t,
                      .point = p,
                      .losses = {&loss, 1},
                      .state = TrialState::completed});
  }
  REQUIRE(informed.state_->epoch == 0);
}

TEST_CASE("gp answers the same whether or not it was asked on the way") {
  const SearchSpace s = cube(3, 0, 1);
  const auto f = [](const Point& x) { return square(x[0] - 0.4) + square(x[1] - 0.6) + square(x[2] - 0.1); };
  for (const TrialId first_stopped : {1000, 47}) {
    GaussianProcess asked, told;
    for (auto* gp : {&asked, &told}) gp->prepare(s, {.constraints = 1});
    Rng points(3);
    for (TrialId t = 0; t < 75; ++t) {
      Rng rng = derived_rng(1, {static_cast<std::uint64_t>(t)});
      asked.suggest({.trial = t, .rng = rng});
      const Point p = s.sample(points);
      const double loss = f(p), excess = p[0] - 0.8;
      for (auto* gp : {&asked, &told}) {
        gp->observe({.kind = Observation::Kind::started, .trial = t, .point = p});
        gp->observe({.kind = Observation::Kind::ended,
                     .trial = t,
                     .point = p,
                     .steps = t >= first_stopped ? 3 : 9,
                     .losses = {&loss, 1},
                     .constraints = {&excess, 1},
                     .state = t >= first_stopped && t % 2 == 0 ? TrialState::stopped : TrialState::completed});
      }
    }
    Rng one(9), other(9);
    const Point a = asked.suggest({.trial = 75, .rng = one}).point, b = told.suggest({.trial = 75, .rng = other}).point;
    REQUIRE(a == b);
  }
}

TEST_CASE("gp survives losses without meaning") {
  const SearchSpace s = space(dim("a", uniform(0, 1)), dim("b", integer(1, 3)), dim("c", boolean()));
  int count = 0;
  for (const double constant : {0.0, 1e308, -1e308, worst_loss})
    run(GaussianProcess{}, s, 25, 1, [&](const Point&) { return Outcome{constant}; });
  run(GaussianProcess{}, s, 40, 2, [&](const Point&) {
    return Outcome{++count % 4 == 0 ? worst_loss : count % 5 == 0 ? 1e308 : -1e300 * count};
  });
  // What is tiny beside its offset is no loss to speak of.
  run(GaussianProcess{}, s, 25, 3, [&](const Point& p) { return Outcome{1e15 + 1e-3 * p[0]}; });
}

TEST_CASE("gp says what is wrong with its options") {
  const auto message = [&](GaussianProcess gp) {
    try {
      AnySearcher any = std::move(gp);
    } catch (const Error& e) {
      REQUIRE(e.code() == Errc::usage);
      return std::string(e.what());
    }
    return std::string();
  };
  REQUIRE_THAT(message({.startup_trials = -1}), ContainsSubstring("startup_trials is -1"));
  REQUIRE_THAT(message({.max_observations = 3}), ContainsSubstring("max_observations is 3"));
  REQUIRE_THAT(message({.prior_confidence = -2}), ContainsSubstring("prior_confidence is -2"));
  REQUIRE(message({}).empty());
}

TEST_CASE("a Gaussian process has converged where it found a minimum, and never where results are noisy") {
  const SearchSpace space = cube(2, -2, 3);
  const auto converged = [&](const std::function<double(const Point&)>& f) {
    GaussianProcess gp;
    gp.prepare(space, {.samples = 60, .seed = 3});
    bool any = false;
    for (TrialId t = 0; t < 60 && !any; ++t) {
      Rng rng = derived_rng(3, {static_cast<std::uint64_t>(t)});
      const Point point = gp.suggest({.trial = t, .rng = rng}).point;
      const double loss[] = {f(point)};
      gp.observe({.kind = Observation::Kind::started, .trial = t, .point = point});
      gp.observe({.kind = Observation::Kind::ended,
                  .trial = t,
                  .point = point,
                  .steps = 1,
                  .losses = loss,
                  .state = TrialState::completed});
      if (!gp.converged()) continue;
      any = true;
      CHECK(gp.stagnant());
      REQUIRE(gp.best() != nullptr);
      CHECK(gp.best()->point[0] == Approx(1.2).margin(0.02));
    }
    return any;
  };
  const auto bowl = [](const Point& p) { return square(p[0] - 1.2) + 2 * square(p[1] + 0.4); };
  CHECK(converged(bowl));
  Rng noise(5);
  CHECK_FALSE(converged([&](const Point& p) { return bowl(p) + 2 * uniform01(noise); }));
}
