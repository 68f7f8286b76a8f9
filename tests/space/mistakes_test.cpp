// Every mistake in a space is an error that names the parameter and says how to mend it.
#include "support/test.hpp"

#include <hypertune/space/space.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

std::string complaint(const std::function<void()>& f) {
  try {
    f();
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::space);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

template <class D>
std::string wrong(const D& domain) {
  return complaint([&] { ht::space(ht::dim("x", domain)); });
}

struct Opaque {
  int id;
  bool operator==(const Opaque&) const = default;
};

}  // namespace

TEST_CASE("wrong bounds") {
  CHECK(wrong(ht::uniform(2, 1)) == "parameter 'x': the lower bound 2 is above the upper bound 1: swap them");
  CHECK(wrong(ht::integer(2, 1)) == "parameter 'x': the lower bound 2 is above the upper bound 1: swap them");
  CHECK(wrong(ht::log_uniform(0, 1)) ==
        "parameter 'x': the lower bound of log_uniform is 0, whose logarithm does not exist: it must be above zero");
  CHECK(wrong(ht::log_uniform(-1, 1)) ==
        "parameter 'x': the lower bound of log_uniform is -1, whose logarithm does not exist: it must be above zero");
  CHECK(wrong(ht::log_int(0, 8)) ==
        "parameter 'x': the lower bound of log_int is 0, whose logarithm does not exist: it must be above zero");
  CHECK(wrong(ht::uniform(not_a_number, 1)) == "parameter 'x': a bound is NaN: give a number");
  CHECK(wrong(ht::uniform(0, not_a_number)) == "parameter 'x': a bound is NaN: give a number");
  CHECK(wrong(ht::uniform(0, inf)) ==
        "parameter 'x': a bound is infinite: only normal and log_normal may be unbounded");
  CHECK_THAT(wrong(ht::integer(0, std::numeric_limits<std::int64_t>::max())), ContainsSubstring("within ±2^53"));
  CHECK(wrong(ht::integer(1, 9007199254740993)) ==
        "parameter 'x': whole numbers must lie within ±2^53, not in [1, 9007199254740993]");
  CHECK(wrong(ht::log_int(1, 8, 9007199254740993)) ==
        "parameter 'x': the quantum of whole numbers must be at most 2^53, not 9007199254740993");
  CHECK(wrong(ht::integer(9007199254740990, 9007199254740992)) == "no error");
  CHECK(wrong(ht::uniform(1, 1)) == "no error");
  CHECK(wrong(ht::integer(1, 1)) == "no error");
}

TEST_CASE("wrong quanta") {
  CHECK(wrong(ht::quantized(0, 1, 0)) == "parameter 'x': the quantum is 0: it must be a number above zero");
  CHECK(wrong(ht::quantized(0, 1, -0.1)) == "parameter 'x': the quantum is -0.1: it must be a number above zero");
  CHECK(wrong(ht::quantized(0, 1, not_a_number)) ==
        "parameter 'x': the quantum is nan: it must be a number above zero");
  CHECK(wrong(ht::integer(0, 10, 0)) == "parameter 'x': the quantum is 0: it must be a number above zero");
  CHECK(wrong(ht::integer(0, 10).quantum(1.5)) ==
        "parameter 'x': the quantum of whole numbers is 1.5: it must be a whole number");
  CHECK_THAT(wrong(ht::quantized(0, 1, 1e-300)), ContainsSubstring("take a larger quantum"));
  CHECK_THAT(wrong(ht::quantized_normal(0.5, 0.01, 10)), ContainsSubstring("take a smaller one"));
}

TEST_CASE("wrong normals") {
  CHECK_THAT(wrong(ht::normal(0, 0)), ContainsSubstring("parameter 'x': the mean 0 and the standard deviation 0 must"));
  CHECK_THAT(wrong(ht::normal(0, -1)), ContainsSubstring("above zero"));
  CHECK_THAT(wrong(ht::normal(not_a_number, 1)), ContainsSubstring("must be finite"));
  CHECK_THAT(wrong(ht::log_normal(0, inf)), ContainsSubstring("must be finite"));
  CHECK_THAT(wrong(ht::normal(0, 1).truncated(2, 1)), ContainsSubstring("lower bound 2 is above"));
  CHECK_THAT(wrong(ht::normal(0, 1).truncated(20, 30)), ContainsSubstring("leave nothing of a normal prior"));
  CHECK_THAT(wrong(ht::log_normal(0, 1).truncated(-2, -1)), ContainsSubstring("must be above zero"));
  CHECK_THAT(wrong(ht::normal(0, 1).truncated(not_a_number, 1)), ContainsSubstring("NaN"));
}

TEST_CASE("wrong options") {
  CHECK(wrong(ht::choice<int>({})) == "parameter 'x': there are no options: give at least one");
  CHECK(wrong(ht::grid(std::vector<double>{})) == "parameter 'x': there are no options: give at least one");
  CHECK(wrong(ht::choice({1, 2, 1})) == "parameter 'x': option '1' is given twice: remove one");
  CHECK(wrong(ht::choice({"a", "a"})) == "parameter 'x': option 'a' is given twice: remove one");
  CHECK(wrong(ht::choice({1.0, not_a_number})) == "parameter 'x': option 2 is nan: every number must be finite");
  CHECK_THAT(wrong(ht::choice<Opaque>({{1}, {2}})), ContainsSubstring("give them names with .names({...})"));
  CHECK_THAT(wrong(ht::choice<Opaque>({{1}, {2}}).names({"one"})),
             ContainsSubstring("1 names are given for 2 options"));
  CHECK(wrong(ht::choice<Opaque>({{1}, {2}}).names({"one", "one"})) ==
        "parameter 'x': option 'one' is given twice: remove one");
  CHECK(wrong(ht::constant(inf)) == "parameter 'x': option 1 is inf: every number must be finite");
}

TEST_CASE("wrong names") {
  const auto u = ht::uniform(0, 1);
  CHECK(complaint([&] { ht::space(ht::dim("", u)); }) == "a parameter has an empty name: give it one");
  CHECK(complaint([&] { ht::space(ht::dim("a", u), ht::dim("a", u)); }) ==
        "parameter 'a': this name is given twice: rename one of the two");
  CHECK_THAT(complaint([&] { ht::space(ht::dim("a\nb", u)); }), ContainsSubstring("control character"));
  CHECK_THAT(complaint([&] { ht::space(ht::dim("constraints", u)); }), ContainsSubstring("choose another"));
}

TEST_CASE("two parameters that always set the same member") {
  struct Part {
    double a = 0, b = 0;
  };
  struct Config {
    double x = 0, y = 0;
    Part part;
    std::string kind;
  };
  const auto u = ht::uniform(0, 1);
  CHECK(complaint([&] {
          ht::space<Config>(ht::dim("x", &Config::x, u), ht::dim("y", &Config::x, ht::uniform(1, 2)));
        }) == "parameter 'y': it sets the same member of the struct as 'x': name another member");
  const auto part = ht::space<Part>(ht::dim("a", &Part::a, u), ht::dim("b", &Part::b, u));
  ht::space<Config>(ht::dim("x", &Config::x, u), ht::dim("y", &Config::y, u), ht::nested("part", &Config::part, part));
  CHECK_THAT(complaint([&] {
               ht::space<Config>(ht::nested("part", &Config::part, part), ht::nested("again", &Config::part, part));
             }),
             ContainsSubstring("parameter 'again.a': it sets the same member of the struct as 'part.a'"));
  // One of the two holds at a time.
  ht::space<Config>(ht::dim("kind", &Config::kind, ht::choice({"sgd", "adam"})),
                    ht::dim("sgd_lr", &Config::x, u).when("kind", "sgd"),
                    ht::dim("adam_lr", &Config::x, u).when("kind", "adam"));
}

TEST_CASE("wrong conditions") {
  const auto u = ht::uniform(0, 1);
  const auto c = ht::dim("optimizer", ht::choice({"sgd", "adam"}));
  CHECK(
      complaint([&] { ht::space(c, ht::dim("x", u).when("optimiser", "sgd")); }) ==
      "parameter 'x': its condition is on 'optimiser', which is no parameter of this space: did you mean 'optimizer'?");
  CHECK(complaint([&] { ht::space(c, ht::dim("x", u).when("optimizer", "rmsprop")); }) ==
        "parameter 'x': its condition is 'optimizer' = rmsprop, which can never be: 'optimizer' must be one of sgd, "
        "adam");
  CHECK(complaint([&] { ht::space(c, ht::dim("x", u).when("optimizer", 3)); }) ==
        "parameter 'x': its condition is 'optimizer' = 3, which can never be: 'optimizer' must be one of sgd, adam");
  CHECK(complaint([&] { ht::space(ht::dim("n", ht::integer(1, 4)), ht::dim("x", u).when("n", 5)); }) ==
        "parameter 'x': its condition is 'n' = 5, which can never be: 'n' must be a whole number in [1, 4]");
  CHECK_THAT(complaint([&] { ht::space(ht::dim("n", ht::integer(1, 4)), ht::dim("x", u).when_between("n", 5, 9)); }),
             ContainsSubstring("can never be"));
  CHECK_THAT(complaint([&] { ht::space(ht::dim("n", ht::integer(1, 9, 4)), ht::dim("x", u).when_between("n", 2, 4)); }),
             ContainsSubstring("can never be"));
  CHECK_THAT(complaint([&] { ht::space(ht::dim("n", ht::integer(1, 4)), ht::dim("x", u).when_between("n", 3, 2)); }),
             ContainsSubstring("the first number must not be above the second"));
  CHECK_THAT(complaint([&] {
               ht::space(ht::dim("n", ht::integer(1, 4)), ht::dim("x", u).when_between("n", not_a_number, 2));
             }),
             ContainsSubstring("the first number must not be above the second"));
  CHECK_THAT(complaint([&] { ht::space(c, ht::dim("x", u).when_between("optimizer", 0, 9)); }),
             ContainsSubstring("none of its options"));
  CHECK_THAT(complaint([&] { ht::space(ht::dim("y", u), ht::dim("x", u).when("y", 0.5)); }),
             ContainsSubstring("use a range"));
  CHECK_THAT(complaint([&] { ht::space(c, ht::dim("x", u).when("optimizer", std::vector<std::string>{})); }),
             ContainsSubstring("lists no value"));
  CHECK_THAT(complaint([&] { ht::space(c, ht::dim("x", u).when("optimizer", "sgd").when("optimizer", "adam")); }),
             ContainsSubstring("exclude each other"));
  CHECK(complaint([&] { ht::space(ht::dim("x", u).when_between("x", 0, 0.5)); }) ==
        "parameter 'x': its condition is on itself: name another parameter");
  CHECK(complaint([&] {
          ht::space(ht::dim("a", ht::boolean()).when("c", true), ht::dim("z", u),
                    ht::dim("b", ht::boolean()).when("a", true), ht::dim("c", ht::boolean()).when("b", true));
        }) == "parameter 'a': its conditions form a cycle ('a' -> 'c' -> 'b' -> 'a'): remove one of them");
  CHECK_THAT(complaint([&] {
               ht::space(ht::dim("a", ht::boolean()).when("b", true), ht::dim("b", ht::boolean()).when("c", true),
                         ht::dim("c", ht::boolean()).when("b", true));
             }),
             ContainsSubstring("'b' -> 'c' -> 'b'"));
}

TEST_CASE("wrong constraints") {
  const auto space = ht::space(ht::dim("x", ht::uniform(0, 1)));
  const auto never = [](const ht::Params&) { return false; };
  ht::Rng rng(1);
  CHECK(complaint([&] { space.constraint("impossible", never).search_space().sample(rng); }) ==
        "no configuration met the constraints in 10000 draws; 'impossible' refused 10000 of them: widen the bounds or "
        "loosen the constraint");
  const auto broken = [](const auto&) -> bool { throw std::out_of_range("no such key"); };
  CHECK(complaint([&] { space.constraint("broken", broken).search_space().sample(rng); }) ==
        "the constraint 'broken' has thrown an exception: no such key");
  CHECK_THAT(complaint([&] { space.constraint("a", never).constraint("a", never); }), ContainsSubstring("given twice"));
  CHECK_THAT(complaint([&] { space.constraint("", never); }), ContainsSubstring("empty name"));
}

TEST_CASE("wrong parameters for a space") {
  const auto space = ht::space(ht::dim("lr", ht::log_uniform(1e-4, 1e-1)), ht::dim("n", ht::integer(1, 9, 2)),
                               ht::dim("optimizer", ht::choice({"sgd", "adam"})),
                               ht::dim("momentum", ht::uniform(0.5, 1)).when("optimizer", "sgd"));
  const auto point = [&](const ht::Params& params) { return complaint([&] { space.search_space().point(params); }); };
  using P = ht::Params;
  const auto n = std::int64_t{3};
  CHECK(point(P{{"lr", 1.0}, {"n", n}, {"optimizer", "adam"}}) ==
        "parameter 'lr' cannot be 1.0: it must be a number in [0.0001, 0.1]");
  CHECK(point(P{{"lr", 0.01}, {"n", std::int64_t{4}}, {"optimizer", "adam"}}) ==
        "parameter 'n' cannot be 4: it must be 1 plus a multiple of 2, at most 9");
  CHECK(point(P{{"lr", 0.01}, {"n", 2.5}, {"optimizer", "adam"}}) ==
        "parameter 'n' cannot be 2.5: it must be 1 plus a multiple of 2, at most 9");
  CHECK(point(P{{"lr", not_a_number}, {"n", n}, {"optimizer", "adam"}}) ==
        "parameter 'lr' cannot be nan: it must be a number in [0.0001, 0.1]");
  CHECK(point(P{{"lr", "0.01"}, {"n", n}, {"optimizer", "adam"}}) ==
        "parameter 'lr' cannot be 0.01: it must be a number in [0.0001, 0.1]");
  CHECK(point(P{{"lr", 0.01}, {"optimizer", "adam"}}) == "parameter 'n' has no value: give it one");
  CHECK(point(P{{"lr", 0.01}, {"n", n}, {"optimizer", "sgd"}}) == "parameter 'momentum' has no value: give it one");
  CHECK(point(P{{"lr", 0.01}, {"n", n}, {"optimizer", "adam"}, {"momentum", 0.9}}) ==
        "parameter 'momentum' = 0.9 is given, but its condition does not hold: leave it out");
  CHECK(point(P{{"lr", 0.01}, {"n", n}, {"optimiser", "adam"}}) ==
        "there is no parameter 'optimiser' in this space: did you mean 'optimizer'?");
  CHECK(point(P{{"lr", 0.01}, {"n", 3.0}, {"optimizer", "adam"}}) == "no error");

  const ht::SearchSpace& s = space;
  CHECK_THAT(s.invalid({0.01, 3, 1}).value_or(""), ContainsSubstring("has 4 coordinates, not 3"));
  CHECK_THAT(s.invalid({0.01, 4, 1, not_a_number}).value_or(""), ContainsSubstring("'n' cannot have the coordinate 4"));
  CHECK_THAT(s.invalid({0.01, 3, 1, 0.9}).value_or(""), ContainsSubstring("'momentum' has a value though"));
  CHECK_THAT(s.invalid({0.01, 3, 0, not_a_number}).value_or(""), ContainsSubstring("'momentum' has no value though"));
  CHECK_THAT(s.invalid({inf, 3, 1, not_a_number}).value_or(""), ContainsSubstring("'lr'"));
  CHECK(!s.invalid({0.01, 3, 1, not_a_number}));
}
