// What a struct's members may be, and what a user may bring along.
#include "support/test.hpp"

#include <hypertune/space/space.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

enum class Activation { relu, tanh };

struct Optimizer {
  std::string kind = "none";
  float momentum = 0;
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};
struct Base {
  bool augment = false;
  friend bool operator==(const Base&, const Base&) = default;
};
struct Model : Base {
  std::uint8_t layers = 0;
  float dropout = -1;
  double width = 0;
  Activation activation = Activation::tanh;
  std::vector<int> kernel;
  std::optional<double> warmup;
  Optimizer opt;
  friend bool operator==(const Model&, const Model&) = default;
};

ht::Space<Model> model_space() {
  const auto inner =
      ht::space<Optimizer>(ht::dim("momentum", &Optimizer::momentum, ht::uniform(0.1, 0.9)).when("kind", "sgd"),
                           ht::dim("kind", &Optimizer::kind, ht::choice<std::string>({"sgd", "adam"})));
  return ht::space<Model>(
      ht::dim("augment", &Model::augment, ht::boolean()), ht::dim("layers", &Model::layers, ht::integer(1, 6)),
      ht::dim("dropout", &Model::dropout, ht::quantized(0, 0.5, 0.1)),
      ht::dim("width", &Model::width, ht::log_int(16, 512)),
      ht::dim("activation", &Model::activation,
              ht::choice<Activation>({Activation::relu, Activation::tanh}).names({"relu", "tanh"})),
      ht::dim("kernel", &Model::kernel, ht::choice<std::vector<int>>({{3, 3}, {5, 5}}).names({"3x3", "5x5"})),
      ht::dim("warmup", &Model::warmup, ht::log_uniform(1, 10)).when("augment", true).when_between("layers", 2, 4),
      ht::nested("opt", &Model::opt, inner.constraint("calm", [](const Optimizer& o) {
        return o.momentum < 0.8F;
      })).when("activation", "relu"));
}

/// Degrees; the minimal user-written domain.
struct Angle {
  using value_type = double;
  ht::DomainInfo info() const { return {.kind = ht::DomainKind::real, .lower = 0, .upper = 360}; }
  double value(double coordinate) const { return coordinate; }
  double coordinate(double value) const { return value; }
};
/// Small numbers preferred, with a prior of its own, and bounds that are not on the lattice.
struct Squared {
  using value_type = int;
  ht::DomainInfo info() const { return {.kind = ht::DomainKind::integer, .lower = 0, .upper = 100.5, .quantum = 2}; }
  int value(double coordinate) const { return static_cast<int>(coordinate); }
  double coordinate(int value) const { return value; }
  double from_unit(double u) const { return 100 * u * u; }
  double to_unit(double x) const { return std::sqrt(x / 100); }
};
struct Broken {
  using value_type = double;
  ht::DomainInfo made;
  ht::DomainInfo info() const { return made; }
  double value(double coordinate) const { return coordinate; }
  double coordinate(double value) const { return value; }
};
static_assert(ht::Domain<Angle> && ht::Domain<Squared> && !ht::Domain<int>);

}  // namespace

TEST_CASE("members of many types, nested structs, bases and optionals") {
  const auto space = model_space();
  const ht::SearchSpace& searched = space;
  ht::Rng rng(3);
  std::set<std::string> seen;
  for (int i = 0; i < 2000; ++i) {
    const auto point = searched.sample(rng);
    const auto model = space.config(point);
    const auto params = searched.params(point);
    REQUIRE(space.config(space.point(model)) == model);
    REQUIRE(space.point(model).size() == point.size());
    REQUIRE(params.get<int>("layers") == model.layers);
    REQUIRE((model.layers >= 1 && model.layers <= 6));
    REQUIRE(model.width == std::trunc(model.width));
    REQUIRE(model.kernel.size() == 2);
    REQUIRE(model.warmup.has_value() == (model.augment && model.layers >= 2 && model.layers <= 4));
    REQUIRE(params.contains("opt.kind") == (model.activation == Activation::relu));
    REQUIRE(params.contains("opt.momentum") == (model.opt.kind == "sgd"));
    REQUIRE((model.opt.kind != "none") == (model.activation == Activation::relu));
    REQUIRE(model.opt.momentum < 0.8F);
    seen.insert(fmt::format("{}{}{}", model.layers, model.opt.kind, model.kernel[0]));
  }
  CHECK(seen.size() == 6 * 3 * 2);
  CHECK(searched.index_of("opt.momentum") > searched.index_of("opt.kind"));  // parents are drawn first
  const auto text = searched.describe();
  CHECK(text.find("opt.momentum") < text.find("opt.kind"));  // and shown as declared
  CHECK_THAT(text, ContainsSubstring("constraints: [\"opt.calm\"]"));
  CHECK_THAT(text, ContainsSubstring("opt.momentum: {uniform: [0.1, 0.9], when: {opt.kind: sgd, activation: relu}}"));
}

TEST_CASE("a configuration outside the space is refused by name") {
  const auto space = model_space();
  ht::Rng rng(4);
  auto model = space.config(space.search_space().sample(rng));
  model.layers = 7;
  CHECK_THROWS_WITH(space.point(model), ContainsSubstring("parameter 'layers'"));
  model.layers = 3;
  model.width = 100.5;
  CHECK_THROWS_WITH(space.point(model), ContainsSubstring("parameter 'width'"));
  model.width = std::nan("");
  CHECK_THROWS_WITH(space.point(model), ContainsSubstring("parameter 'width'"));
  model.width = 100;
  model.kernel = {7, 7};
  CHECK_THROWS_WITH(space.point(model), ContainsSubstring("parameter 'kernel'"));
}

TEST_CASE("bounds that the member cannot hold are refused") {
  const auto wrong = [](auto domain) { return ht::space<Model>(ht::dim("layers", &Model::layers, domain)); };
  CHECK_THROWS_WITH(wrong(ht::integer(0, 256)),
                    ContainsSubstring("parameter 'layers': its values from 0 to 256 do not"));
  CHECK_THROWS_WITH(wrong(ht::integer(-1, 5)), ContainsSubstring("use a wider one"));
  CHECK_THROWS_WITH(wrong(ht::choice({1, 300})), ContainsSubstring("from 1 to 300"));
  CHECK_NOTHROW(wrong(ht::integer(0, 255)));
  CHECK_NOTHROW(wrong(ht::choice({1, 3})));
}

TEST_CASE("a user's own domain") {
  const auto space = ht::space(ht::dim("angle", Angle{}), ht::dim("squared", Squared{}));
  const ht::SearchSpace& s = space;
  ht::Rng rng(5);
  int low = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto point = s.sample(rng);
    REQUIRE(!s.invalid(point));
    const auto params = s.params(point);
    const int x = params.get<int>("squared");
    REQUIRE((x % 2 == 0 && x >= 0 && x <= 100));
    low += x < 25 ? 1 : 0;
    REQUIRE(s.from_unit(s.to_unit(point), rng)[1] == point[1]);
  }
  CHECK((low > 400 && low < 600));
  CHECK(s.domain(1).options == 51);
  for (const auto& info : {ht::DomainInfo{.lower = 2, .upper = 1}, ht::DomainInfo{.lower = 0, .upper = 1, .log = true},
                           ht::DomainInfo{.lower = std::nan(""), .upper = 1},
                           ht::DomainInfo{.lower = 0, .upper = 1, .quantum = -1}, ht::DomainInfo{.upper = INFINITY},
                           ht::DomainInfo{.mean = 1}, ht::DomainInfo{.kind = ht::DomainKind::categorical}})
    CHECK_THROWS_WITH(ht::space(ht::dim("b", Broken{info})), ContainsSubstring("parameter 'b'"));
}

TEST_CASE("derived parameters see what was drawn before them, under the names of their own space") {
  const auto twice =
      ht::space(ht::dim("base", ht::integer(1, 9)),
                ht::dim("twice", ht::derived([](const ht::Params& p) { return 2 * p.get<int>("base"); })),
                ht::dim("late", ht::uniform(0, 1)));
  const auto space = ht::space(ht::dim("grid", ht::grid({10, 20})), ht::nested("in", twice),
                               ht::dim("noisy", ht::derived([](const ht::Params& p, ht::Rng& rng) {
                                         CHECK(!p.contains("after"));
                                         return p.get<double>("grid") + p.get<double>("in.twice") + ht::uniform01(rng);
                                       })),
                               ht::dim("after", ht::uniform(0, 1)));
  const ht::SearchSpace& s = space;
  ht::Rng rng(6);
  for (int i = 0; i < 200; ++i) {
    auto point = i % 2 == 0 ? s.sample(rng) : s.from_unit(std::vector<double>(s.size(), 0.3), rng);
    if (i % 3 == 0) s.set_grid(point, static_cast<std::uint64_t>(i % 2));
    REQUIRE(!s.invalid(point));
    const auto p = s.params(point);
    REQUIRE(p.get<int>("in.twice") == 2 * p.get<int>("in.base"));
    const double noise = p.get<double>("noisy") - p.get<double>("grid") - p.get<double>("in.twice");
    REQUIRE((noise >= 0 && noise < 1));
    REQUIRE(s.params(s.point(p)) == p);
  }
  // What a record says of one is bounded by nothing but its type.
  const auto whole = ht::space(ht::dim("n", ht::derived([](const ht::Params&) { return 3; }))).search_space();
  CHECK(whole.params({1e300}).get<std::int64_t>("n") > 9'000'000'000'000'000'000);
  CHECK(whole.params({-1e300}).get<std::int64_t>("n") == std::numeric_limits<std::int64_t>::min());
  CHECK_THROWS_AS(whole.point({{"n", 1e300}}), ht::Error);
  const auto broken = ht::space(ht::dim("x", ht::derived([](const ht::Params&) { return std::nan(""); })));
  CHECK_THROWS_WITH(broken.search_space().sample(rng), ContainsSubstring("parameter 'x': its callable returned nan"));
}

TEST_CASE("constraints bind what is drawn, and are named when broken") {
  const auto space =
      ht::space(ht::dim("a", ht::integer(1, 10)), ht::dim("b", ht::integer(1, 10)))
          .constraint("ordered", [](const ht::Params& p) { return p.get<int>("a") <= p.get<int>("b"); })
          .constraint("small", [](const ht::Params& p) { return p.get<int>("a") + p.get<int>("b") < 12; });
  const ht::SearchSpace& s = space;
  ht::Rng rng(7);
  std::set<ht::Point> seen;
  for (int i = 0; i < 3000; ++i) {
    const auto point = s.sample(rng);
    REQUIRE(s.feasible(point));
    REQUIRE(!s.violated(point));
    seen.insert(point);
  }
  CHECK(seen.size() == 30);  // all that there are
  CHECK(s.violated({5, 1}) == "ordered");
  CHECK(s.violated({6, 6}) == "small");
  CHECK(!s.feasible({5, 1}));
}

TEST_CASE("fix makes a smaller space") {
  const auto space = model_space();
  const auto sgd = space.fix("opt.kind", "sgd").fix("layers", 3);
  const ht::SearchSpace& s = sgd;
  ht::Rng rng(8);
  for (int i = 0; i < 200; ++i) {
    const auto point = s.sample(rng);
    const auto model = sgd.config(point);
    REQUIRE(model.layers == 3);
    REQUIRE(s.params(point).get<int>("layers") == 3);
    REQUIRE(model.opt.kind == (model.activation == Activation::relu ? "sgd" : "none"));
    REQUIRE(sgd.config(sgd.point(model)) == model);
  }
  const auto adam = space.fix("opt.kind", "adam");
  CHECK(!adam.search_space().index_of("opt.momentum"));
  CHECK(adam.search_space().size() == space.search_space().size() - 1);
  CHECK(!space.fix("activation", "tanh").search_space().index_of("opt.kind"));
  CHECK_THROWS_WITH(space.fix("layer", 3), ContainsSubstring("did you mean 'layers'?"));
  CHECK_THROWS_WITH(space.fix("layers", 9), ContainsSubstring("'layers' cannot be 9"));
}

TEST_CASE("what searchers are told of domains") {
  const ht::SearchSpace s = ht::space(
      ht::dim("u", ht::uniform(0, 1)), ht::dim("q", ht::quantized(0, 1, 0.3)), ht::dim("l", ht::log_int(1, 100)),
      ht::dim("c", ht::choice({"x", "y"})), ht::dim("o", ht::ordinal({"x", "y", "z"})), ht::dim("g", ht::grid({3, 1})),
      ht::dim("n", ht::log_normal(0, 1)), ht::dim("k", ht::constant("v")), ht::dim("d", ht::discrete({8, 2})));
  CHECK(s.domain(0).options == 0);
  CHECK(s.domain(1).upper == 0.9);
  CHECK(s.domain(1).options == 4);
  CHECK((s.domain(2).kind == ht::DomainKind::integer && s.domain(2).log && s.domain(2).options == 100));
  CHECK((s.domain(3).kind == ht::DomainKind::categorical && s.domain(3).upper == 1));
  CHECK(s.domain(4).kind == ht::DomainKind::ordinal);
  CHECK((s.domain(5).grid && s.domain(5).kind == ht::DomainKind::categorical));
  CHECK((s.domain(6).log && s.domain(6).mean == 0 && s.domain(6).sd == 1 && s.domain(6).lower == 0));
  CHECK(s.domain(7).kind == ht::DomainKind::constant);
  CHECK(s.text(8, 0) == "2");
  CHECK(s.text(1, 0.9) == "0.9");
  CHECK(s.text(0, ht::inactive) == "-");
  CHECK(s.grid_size() == 2);
  CHECK(!s.cardinality());
  const ht::SearchSpace finite = ht::space(ht::dim("a", ht::integer(1, 4)), ht::dim("b", ht::boolean()));
  CHECK(finite.cardinality() == 8U);
  CHECK(ht::SearchSpace(ht::space()).cardinality() == 1U);
  const ht::SearchSpace huge =
      ht::space(ht::dim("a", ht::integer(0, 1LL << 51)), ht::dim("b", ht::integer(0, 1LL << 51)));
  CHECK(!huge.cardinality());
}

TEST_CASE("priors have the shape they are named for") {
  ht::Rng rng(9);
  const int n = 20'000;
  const auto mean = [&](const auto& domain, auto f) {
    const ht::SearchSpace s = ht::space(ht::dim("x", domain));
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += f(s.sample(rng)[0]);
    return sum / n;
  };
  const auto self = [](double x) { return x; };
  CHECK(mean(ht::uniform(2, 4), self) == Approx(3).epsilon(0.01));
  CHECK(mean(ht::log_uniform(1e-4, 1e-2), [](double x) { return std::log10(x); }) == Approx(-3).epsilon(0.01));
  CHECK(mean(ht::normal(5, 2), self) == Approx(5).epsilon(0.01));
  CHECK(mean(ht::normal(5, 2), [](double x) { return (x - 5) * (x - 5); }) == Approx(4).epsilon(0.05));
  CHECK(mean(ht::log_normal(1, 0.5), [](double x) { return std::log(x); }) == Approx(1).epsilon(0.02));
  CHECK(mean(ht::normal(0, 1).truncated(0, 100), self) == Approx(std::sqrt(2 / 3.14159265)).epsilon(0.02));
  CHECK(mean(ht::normal(0, 1).truncated(4, 100), self) == Approx(4.2256).epsilon(0.002));  // the far tail
  CHECK(mean(ht::quantized_normal(10, 3, 0.5), self) == Approx(10).epsilon(0.01));
  CHECK(mean(ht::integer(1, 3), [](double x) { return x == 3 ? 1.0 : 0.0; }) == Approx(1.0 / 3).epsilon(0.05));
  CHECK(mean(ht::integer(1, 3), [](double x) { return x == 1 ? 1.0 : 0.0; }) == Approx(1.0 / 3).epsilon(0.05));
  // log_int: both ends have their whole cell: P(x) = log((x + 1/2) / (x - 1/2)) / log(8.5 / 0.5).
  for (const int x : {1, 2, 7, 8})
    CHECK(mean(ht::log_int(1, 8), [&](double y) { return y == x ? 1.0 : 0.0; }) ==
          Approx(std::log((x + 0.5) / (x - 0.5)) / std::log(17.0)).epsilon(0.15));
}

TEST_CASE("whole numbers of 64 bits pass a space of a struct unchanged") {
  struct Wide {
    std::int64_t a = 0;
    std::uint64_t b = 0;
    double c = 0;
  };
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  const auto space = ht::space<Wide>(ht::dim("a", &Wide::a, ht::choice<std::int64_t>({most, least, most - 1})),
                                     ht::dim("b", &Wide::b, ht::choice<std::uint64_t>({last, last - 1, 7})));
  for (const double a : {0.0, 1.0, 2.0})
    for (const double b : {0.0, 1.0, 2.0}) {
      const Wide config = space.config({a, b});
      CHECK(config.a == std::vector<std::int64_t>{most, least, most - 1}[static_cast<std::size_t>(a)]);
      CHECK(config.b == std::vector<std::uint64_t>{last, last - 1, 7}[static_cast<std::size_t>(b)]);
      CHECK(space.point(config) == ht::Point{a, b});
      CHECK(space.search_space().point(space.search_space().params({a, b})) == ht::Point{a, b});
    }
  CHECK(ht::to_string(space.search_space().params({0, 0})) == "a=9223372036854775807 b=18446744073709551615");
  const auto refused = [](const auto& domain, auto member) {
    CHECK_THROWS_WITH(ht::space<Wide>(ht::dim("p", member, domain)), ContainsSubstring("do not fit the member's type"));
  };
  refused(ht::choice<std::uint64_t>({1, last}), &Wide::a);
  refused(ht::choice<std::int64_t>({1, -1}), &Wide::b);
  refused(ht::choice<std::int64_t>({1, (std::int64_t{1} << 53) + 1}), &Wide::c);
  const auto far = [](auto make) { CHECK_THROWS_WITH(ht::space(ht::dim("n", make())), ContainsSubstring("±2^53")); };
  far([] { return ht::integer(0, (std::int64_t{1} << 53) + 1); });
  far([] { return ht::log_int(1, most); });
  far([] { return ht::integer(least, 0); });
  const auto derived = ht::space(ht::dim("d", ht::derived([](const ht::Params&) { return std::int64_t{1} << 60; })),
                                 ht::dim("n", ht::integer(0, 1)));
  ht::Rng rng(1);
  CHECK_NOTHROW(ht::space(ht::dim("d", ht::derived([](const ht::Params&) { return std::int64_t{1} << 53; })))
                    .search_space()
                    .sample(rng));
  CHECK_THROWS_WITH(derived.search_space().sample(rng), ContainsSubstring("±2^53"));
}

TEST_CASE("quantised values are the decimals that a person expects") {
  const ht::SearchSpace s = ht::space(ht::dim("x", ht::quantized(0.1, 1, 0.1)));
  ht::Rng rng(10);
  std::string all;
  for (int k = 0; k < 10; ++k) all += s.text(0, s.from_unit(std::vector<double>{(k + 0.5) / 10}, rng)[0]) + " ";
  CHECK(all == "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 ");
  CHECK(s.point(ht::Params{{"x", 0.1 + 0.2}})[0] == 0.3);
  CHECK(s.params({0.1 * 3}).get<double>("x") == 0.3);  // a searcher that computes lower + k * quantum itself
}
