// Laws that every space keeps, over hundreds of random spaces.
#include "random_space.hpp"
#include "support/test.hpp"

#include <cmath>
#include <vector>

using namespace hypertune_test;

namespace {

/// Points are equal: discrete coordinates exactly, real ones nearly.
bool same(const ht::SearchSpace& space, const ht::Point& a, const ht::Point& b) {
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (ht::is_active(a[d]) != ht::is_active(b[d])) return false;
    if (!ht::is_active(a[d]) || a[d] == b[d]) continue;
    const auto& info = space.domain(d);
    if (info.kind != ht::DomainKind::real || info.quantum > 0) return false;
    const double scale = info.mean && !info.log
                             ? *info.sd
                             : std::max(std::fabs(a[d]), std::isfinite(info.upper) ? std::fabs(info.upper) : 0.0);
    if (std::fabs(a[d] - b[d]) > 1e-6 * scale) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("sampled points are valid and survive every round trip") {
  ht::Rng rng(7);
  for (int s = 0; s < 400; ++s) {
    const auto made = random_space(rng);
    const ht::SearchSpace& space = made;
    INFO(space.describe());
    for (int i = 0; i < 20; ++i) {
      const auto point = space.sample(rng);
      REQUIRE(space.invalid(point).value_or("") == "");
      const auto unit = space.to_unit(point);
      for (std::size_t d = 0; d < unit.size(); ++d) {
        REQUIRE(ht::is_active(unit[d]) == ht::is_active(point[d]));
        if (ht::is_active(unit[d])) REQUIRE((unit[d] >= 0 && unit[d] <= 1));
      }
      REQUIRE(same(space, point, space.from_unit(unit, rng)));
      const auto params = space.params(point);
      REQUIRE(same(space, point, space.point(params)));
      REQUIRE(space.params(space.point(params)) == params);
      REQUIRE(made.point(made.config(point)).size() == point.size());
    }
  }
}

TEST_CASE("from_unit is monotone and stays in bounds over the whole cube, corners included") {
  ht::Rng rng(8);
  for (int s = 0; s < 600; ++s) {
    const auto dim = random_dim("x", rng);
    const ht::SearchSpace space = ht::space(dim);
    const auto& info = space.domain(0);
    INFO(space.describe());
    double last = -std::numeric_limits<double>::infinity();
    for (int i = 0; i <= 200; ++i) {
      const auto point = space.from_unit(std::vector<double>{i / 200.0}, rng);
      REQUIRE(!space.invalid(point));
      REQUIRE(std::isfinite(point[0]));
      REQUIRE((point[0] >= info.lower && point[0] <= info.upper));
      REQUIRE(point[0] >= last);
      last = point[0];
      if (info.quantum > 0) {
        const double k = (point[0] - info.lower) / info.quantum;
        REQUIRE(std::fabs(k - std::round(k)) < 1e-6);
      }
      if (info.options > 0 && info.kind != ht::DomainKind::constant) {
        const auto again = space.from_unit(space.to_unit(point), rng);
        REQUIRE(again == point);
      }
    }
    for (const double wild : {-1.0, 2.0, std::nan("")})
      REQUIRE(!space.invalid(space.from_unit(std::vector<double>{wild}, rng)));
  }
}

TEST_CASE("every value of a discrete domain round-trips and is drawn as often as its prior says") {
  ht::Rng rng(9);
  for (int s = 0; s < 100; ++s) {
    const auto dim = random_dim("x", rng);
    const ht::SearchSpace space = ht::space(dim);
    const auto& info = space.domain(0);
    if (info.options < 2 || info.options > 2000) continue;
    INFO(space.describe());
    // The cells of the unit interval tile it: the next value begins where the last one ends.
    std::vector<double> values;
    for (int i = 0; i <= 20'000; ++i) {
      const double x = space.from_unit(std::vector<double>{i / 20'000.0}, rng)[0];
      if (values.empty() || values.back() != x) values.push_back(x);
    }
    if (!info.mean) CHECK((values.size() == info.options || info.options > 500));
    CHECK(values.size() <= info.options);
    for (const double x : values) CHECK(space.from_unit(space.to_unit({x}), rng)[0] == x);
  }
}

TEST_CASE("a condition only looks back, and params keep the declared order") {
  ht::Rng rng(10);
  for (int s = 0; s < 200; ++s) {
    const ht::SearchSpace space = random_space(rng);
    auto point = space.sample(rng);
    std::vector<bool> active;
    for (std::size_t d = 0; d < space.size(); ++d) active.push_back(space.active(d, point));
    for (std::size_t d = space.size(); d-- > 0;) {
      point[d] = 12345;  // what comes later or is the dimension itself does not matter
      REQUIRE(space.active(d, point) == active[d]);
    }
    std::string last;
    for (const auto& [name, value] : space.params(space.sample(rng))) {
      REQUIRE(name > last);  // p0, p1, … as declared
      last = name;
      REQUIRE(space.name(*space.index_of(name)) == name);
    }
    REQUIRE(!space.index_of("nothing"));
  }
}

TEST_CASE("equal seeds give equal draws, and copies share them") {
  ht::Rng make(11);
  for (int s = 0; s < 50; ++s) {
    const ht::SearchSpace space = random_space(make);
    const ht::SearchSpace copy = space;  // NOLINT: that is the point
    ht::Rng b(s);
    ht::Rng c(s);
    for (int i = 0; i < 5; ++i) REQUIRE(space.params(space.sample(b)) == copy.params(copy.sample(c)));
  }
}

TEST_CASE("set_grid visits every combination of the grid once and leaves a valid point") {
  ht::Rng rng(12);
  const ht::SearchSpace space =
      ht::space(ht::dim("lr", ht::log_uniform(1e-4, 1e-1)), ht::dim("a", ht::grid({1, 2, 3})),
                ht::dim("b", ht::grid<std::string>({"x", "y"})), ht::dim("c", ht::uniform(0, 1)).when("b", "y"),
                ht::dim("d", ht::integer(1, 9)).when("b", "x"));
  REQUIRE(space.grid_size() == 6);
  std::vector<std::string> seen;
  for (std::uint64_t i = 0; i < space.grid_size(); ++i) {
    auto point = space.sample(rng);
    const double lr = point[0];
    space.set_grid(point, i);
    REQUIRE(!space.invalid(point));
    CHECK(point[0] == lr);
    const auto params = space.params(point);
    seen.push_back(fmt::format("{}{}", params.get<int>("a"), params.get<std::string>("b")));
  }
  CHECK(seen == std::vector<std::string>{"1x", "1y", "2x", "2y", "3x", "3y"});
}
