#include "../space/random_space.hpp"
#include "support/test.hpp"
#include "support/yaml_corpus.hpp"

#include <hypertune/config/space.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace hypertune_test;

namespace {

ht::SearchSpace read(const std::string& text) {
  return support::kept("space", text, [&] { return ht::space_from_yaml(ht::load_yaml_text(text, "s.yaml")); });
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::input);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

/// Whether the constraint holds for a = 2, b = 3.5, c = "red", d = true, e inactive.
bool holds(const std::string& constraint) {
  const auto space = read(
      "a: {integer: [0, 9]}\nb: {uniform: [0, 9]}\nc: {choice: [red, blue, \"4 2\"]}\nd: {boolean: []}\n"
      "e: {uniform: [0, 1], when: {c: blue}}\nn: {discrete: [1, 4, 9]}\nconstraints: ['" +
      constraint + "']\n");
  return space.feasible({2, 3.5, 0, 1, ht::inactive, 1});
}

const char* const full = R"(lr:        {log_uniform: [1.0e-4, 1.0e-1]}
dropout:   {uniform: [0, 0.5], quantum: 0.1}
dropout2:  {quantized: [0, 0.5, 0.1]}
step:      {quantized_log: [1, 100, 0.5]}
hidden:    {log_int: [16, 512]}
even:      {integer: [2, 20], quantum: 2}
noise:     {normal: [0, 1], bounds: [-2, .inf]}
tall:      {quantized_normal: [180, 7, 1]}
wide:      {log_normal: [0, 1], quantum: 0.25}
optimizer: {choice: [sgd, adam, rmsprop]}
mixed:     {choice: [1, 2.5, "7", true, "a b"]}
size:      {ordinal: [small, medium, large]}
batch:     {discrete: [64, 16, 32]}
nesterov:  {boolean: [false, true], when: {optimizer: sgd}}
depth:     {grid: [1, 2, 3]}
momentum:  {uniform: [0.5, 0.99], when: {optimizer: [sgd, rmsprop], depth: {between: [2, 3]}}}
warm:      {uniform: [0, 1], when: {lr: {between: [0.01, 0.1]}}}
epochs:    81
name:      {constant: "on"}
model:
  when: {optimizer: adam}
  width: {integer: [8, 64], quantum: 8}
  heads: {int: [1, 8], when: {model.width: {between: [16, 64]}}}
  inner:
    rate: 0.5
constraints: ["hidden * depth <= 1024", "model.width >= model.heads"]
)";

}  // namespace

TEST_CASE("the grammar, and its canonical form") {
  const auto space = read(full);
  CHECK(space.describe() == R"(lr: {log_uniform: [0.0001, 0.1]}
dropout: {uniform: [0, 0.5], quantum: 0.1}
dropout2: {uniform: [0, 0.5], quantum: 0.1}
step: {log_uniform: [1, 100], quantum: 0.5}
hidden: {log_int: [16, 512]}
even: {integer: [2, 20], quantum: 2}
noise: {normal: [0, 1], bounds: [-2, .inf]}
tall: {normal: [180, 7], quantum: 1}
wide: {log_normal: [0, 1], quantum: 0.25}
optimizer: {choice: [sgd, adam, rmsprop]}
mixed: {choice: [1, 2.5, "7", true, "a b"]}
size: {ordinal: [small, medium, large]}
batch: {discrete: [16, 32, 64]}
nesterov: {boolean: [false, true], when: {optimizer: sgd}}
depth: {grid: [1, 2, 3]}
momentum: {uniform: [0.5, 0.99], when: {optimizer: [sgd, rmsprop], depth: [2, 3]}}
warm: {uniform: [0, 1], when: {lr: {between: [0.01, 0.1]}}}
epochs: {constant: 81}
name: {constant: "on"}
model.width: {integer: [8, 64], quantum: 8, when: {optimizer: adam}}
model.heads: {integer: [1, 8], when: {optimizer: adam, model.width: {between: [16, 64]}}}
model.inner.rate: {constant: 0.5, when: {optimizer: adam}}
constraints: ["hidden * depth <= 1024", "model.width >= model.heads"]
)");
  CHECK(read(space.describe()).describe() == space.describe());
  ht::Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const auto point = space.sample(rng);
    const auto p = space.params(point);
    REQUIRE(!space.invalid(point));
    REQUIRE(p.get<int>("hidden") * p.get<int>("depth") <= 1024);
    REQUIRE(p.contains("model.width") == (p.get<std::string>("optimizer") == "adam"));
    REQUIRE(space.params(space.point(p)) == p);
  }
}

TEST_CASE("what describe() prints reads back as the same space") {
  ht::Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    const ht::SearchSpace space = random_space(rng);
    INFO(space.describe());
    const auto again = read(space.describe());
    REQUIRE(again.describe() == space.describe());
    REQUIRE(again.size() == space.size());
    ht::Rng a(3);
    ht::Rng b(3);
    for (int j = 0; j < 5; ++j) REQUIRE(again.params(again.sample(a)) == space.params(space.sample(b)));
  }
}

TEST_CASE("awkward names and texts survive the way to YAML and back") {
  const ht::SearchSpace space = ht::space(
      ht::dim("a b",
              ht::choice<std::string>({"x: y", "\"q\"", "back\\slash", "", "null", "~", "1e3", "#no", "tab\there"})),
      ht::dim("true", ht::choice({1.0, 2.0})), ht::dim("ünï", ht::ordinal({"é", "- x"})).when("a b", "x: y"),
      ht::dim("0", ht::choice<float>({0.1F, 3.0F})), ht::dim("uniform", ht::uniform(0, 1)),
      ht::dim("when", ht::boolean()));
  INFO(space.describe());
  CHECK(read(space.describe()).describe() == space.describe());
  CHECK(space.params({8, 0, ht::inactive, 0, 0, 0}) == read(space.describe()).params({8, 0, ht::inactive, 0, 0, 0}));
}

TEST_CASE("derived parameters are computed, or drawn, from those before them") {
  const auto space = read(
      "width: {integer: [1, 10]}\nkind: {choice: [small, large]}\ndouble: {derived: 2 * width}\n"
      "heads: {derived: 'integer(1, width)'}\nlr: {derived: 'uniform(0, 1 / heads)', when: {kind: large}}\n"
      "constraints: heads < 9\n");
  CHECK(read(space.describe()).describe() == space.describe());
  ht::Rng rng(4);
  std::set<std::int64_t> heads;
  for (int i = 0; i < 500; ++i) {
    const auto p = space.params(space.sample(rng));
    const auto width = p.get<int>("width");
    CHECK(p.get<double>("double") == 2 * width);
    const auto h = p.get<std::int64_t>("heads");
    CHECK((h >= 1 && h <= width && h < 9));
    heads.insert(h);
    CHECK(p.contains("lr") == (p.get<std::string>("kind") == "large"));
    if (p.contains("lr")) CHECK((p.get<double>("lr") >= 0 && p.get<double>("lr") <= 1.0 / static_cast<double>(h)));
    CHECK(space.params(space.point(p)) == p);
  }
  CHECK(heads.size() == 8);
  CHECK_THROWS_WITH(read("w: {integer: [0, 0]}\nx: {derived: 1 / w}\n").sample(rng), ContainsSubstring("finite"));
  const auto careless = read("k: {choice: [1, 2]}\nw: {integer: [1, 2], when: {k: 1}}\nx: {derived: w + 1}\n");
  CHECK_THROWS_WITH(
      [&] {
        for (int i = 0; i < 50; ++i) careless.sample(rng);
      }(),
      ContainsSubstring("not active"));
}

TEST_CASE("each number of a list is of the kind that it is written as") {
  const auto space = read("a: {choice: [0.5, 1]}\nb: {choice: [1.0, 2.5]}\nc: {choice: [1, x]}\n");
  CHECK(space.params({1, 0, 0}) == ht::Params{{"a", std::int64_t{1}}, {"b", 1.0}, {"c", std::int64_t{1}}});
  CHECK(space.params({0, 1, 1}) == ht::Params{{"a", 0.5}, {"b", 2.5}, {"c", "x"}});
  const auto sorted = read("d: {discrete: [2.5, 1, 2, 0.5]}\n");
  std::string all;
  for (int i = 0; i < 4; ++i) all += sorted.text(0, i) + " ";
  CHECK(all == "0.5 1 2 2.5 ");
  // One feature, or all of them.
  const auto features = read("a: {choice: [1, 1.0]}\nb: {uniform: [0, 1], when: {a: 1.0}}\n");
  CHECK(features.point({{"a", std::int64_t{1}}})[0] == 0);
  CHECK(features.point({{"a", 1.0}, {"b", 0.5}}) == ht::Point{1, 0.5});
  CHECK(features.params({1, 0.5}) == ht::Params{{"a", 1.0}, {"b", 0.5}});
  CHECK(complaint("a: {choice: [1.0, 1.00]}\n").find("option '1.0' is given twice") != std::string::npos);
}

TEST_CASE("whole numbers arrive digit for digit, or are refused") {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;  // the first that no double can hold
  const auto space = read(
      "a: {choice: [9223372036854775807, 9007199254740993, 9007199254740992, -9223372036854775808, 0.5]}\n"
      "b: {discrete: [9007199254740993, 9007199254740992, 9007199254740994]}\n"
      "c: {grid: [9007199254740993, 9007199254740994]}\n"
      "d: 9007199254740993\n"
      "e: {uniform: [0, 1], when: {a: 9007199254740993}}\n"
      "f: {uniform: [0, 1], when: {b: {between: [0, 9007199254740992]}}}\n");
  const std::vector<ht::Value> all{most, odd, odd - 1, least, 0.5};
  for (std::size_t i = 0; i < all.size(); ++i) {
    ht::Params params{{"a", all[i]}, {"b", odd}, {"c", odd + 1}, {"d", odd}};
    if (all[i] == ht::Value(odd)) params.set("e", 0.25);
    const auto point = space.point(params);
    CHECK(space.params(point) == params);
    CHECK(ht::space_from_yaml(ht::load_yaml_text(space.describe(), "again")).params(point) == params);
  }
  CHECK_NOTHROW(space.point({{"a", most}, {"b", odd - 1}, {"c", odd}, {"f", 0.5}}));
  CHECK(space.describe().find("b: {discrete: [9007199254740992, 9007199254740993, 9007199254740994]}") !=
        std::string::npos);

  for (const std::string domain : {"{choice: [1, N]}", "{grid: [N]}", "N", "{constant: N}", "{discrete: [N, 1]}"})
    for (const std::string number : {"18446744073709551615", "9223372036854775808", "-9223372036854775809"}) {
      std::string text = domain;
      text.replace(text.find('N'), 1, number);
      INFO(text);
      CHECK(complaint("x: " + text + "\n")
                .find(number + ": whole numbers go from -9223372036854775808 to "
                               "9223372036854775807") != std::string::npos);
    }
  CHECK(read("x: {choice: [1, \"18446744073709551615\"]}\n").text(0, 1) == "18446744073709551615");
  for (const std::string bounds : {"[0, 9007199254740993]", "[-9007199254740993, 0]"})
    CHECK(complaint("x: {integer: " + bounds + "}\n").find("±2^53") != std::string::npos);
  CHECK(read("x: {integer: [-9007199254740992, 0], quantum: 16}\n").domain(0).lower == -0x1p53);
  // A number that a real parameter cannot be.
  CHECK_THROWS_WITH(read("x: {uniform: [0, 1.0e+17]}\n").point({{"x", odd}}), ContainsSubstring("real"));
}

TEST_CASE("expressions do not compute with rounded whole numbers") {
  ht::Rng rng(1);
  const std::string space = "s: {choice: [1, 9007199254740993]}\nn: {integer: [0, 9]}\n";
  CHECK(complaint(space + "d: {derived: s + 1}\n").find("computes with 9007199254740993") != std::string::npos);
  CHECK(complaint(space + "constraints: [n < 9007199254740993]\n").find("computes with 9007199254740993") !=
        std::string::npos);
  CHECK(complaint(space + "constraints: [n < s]\n").find("computes with 9007199254740993") != std::string::npos);
  CHECK(complaint(space + "constraints: [n < 9007199254740994]\n") == "no error");
  const auto grown = read("n: {integer: [9007199254740992, 9007199254740992]}\nd: {derived: n + 2}\n");
  CHECK_THROWS_WITH(grown.sample(rng), ContainsSubstring("parameter 'd'") && ContainsSubstring("±2^53"));
}

TEST_CASE("a derived parameter is whole where its formula can only give whole numbers") {
  ht::Rng rng(1);
  const auto text = [&](const std::string& formula) {
    const auto space = read(
        "n: {integer: [3, 3]}\nz: {integer: [-2, -2]}\nk: {choice: [4]}\nm: {choice: [0.5]}\n"
        "u: {uniform: [2, 2]}\nx: {derived: \"" +
        formula + "\"}\n");
    return ht::to_string(*space.params(space.sample(rng)).find("x"));
  };
  CHECK(text("2 * n") == "6");
  CHECK(text("n + k - 1") == "6");
  CHECK(text("2 ^ n") == "8");
  CHECK(text("z ^ n") == "-8");
  CHECK(text("min(n, k, 9)") == "3");
  CHECK(text("abs(-n)") == "3");
  CHECK(text("round(n / 2)") == "2");
  CHECK(text("integer(1, 1) + n") == "4");
  CHECK(text("2 ^ integer(3, 3)") == "8");
  CHECK(text("n / 1") == "3.0");
  CHECK(text("2.0 * n") == "6.0");
  CHECK(text("n ^ z * 9") == "1.0");
  CHECK(text("2 * m") == "1.0");
  CHECK(text("u") == "2.0");
  CHECK(text("sqrt(k)") == "2.0");
}

TEST_CASE("mistakes in a space are told with file and line") {
  CHECK(complaint("lr: {uniform: [0, 1]}\nx: {uniform: [2, 1]}\n") ==
        "s.yaml:2: parameter 'x': the lower bound 2 is above the upper bound 1: swap them");
  CHECK(
      complaint("x: {log_uniform: [0, 1]}\n") ==
      "s.yaml:1: parameter 'x': the lower bound of log_uniform is 0, whose logarithm does not exist: it must be above "
      "zero");
  CHECK(complaint("x: {log_unifrom: [0.1, 1]}\n") ==
        "s.yaml:1: parameter 'x' has the unknown domain 'log_unifrom': did you mean 'log_uniform'?");
  CHECK(complaint("x: {uniform: [0, 1], whem: {y: 1}}\n") ==
        "s.yaml:1: unknown key 'whem' in 'x': did you mean 'when'?");
  CHECK(complaint("x: {choice: [1, 2], quantum: 1}\n") ==
        "s.yaml:1: unknown key 'quantum' in 'x'; known here: choice, when, prior");
  CHECK_THAT(complaint("x: [1, 2]\n"),
             ContainsSubstring("s.yaml:1: parameter 'x' is a bare list: write {choice: [...]}"));
  CHECK_THAT(complaint("x: boolean\n"), ContainsSubstring("s.yaml:1: parameter 'x' is the bare word 'boolean'"));
  CHECK_THAT(complaint("x:\n"), ContainsSubstring("parameter 'x' is empty"));
  CHECK_THAT(complaint("x: {}\n"), ContainsSubstring("parameter 'x' has no domain"));
  CHECK_THAT(complaint("x: {when: {y: 1}}\n"), ContainsSubstring("parameter 'x' has no domain"));
  CHECK(complaint("x: {uniform: [0, 1], normal: [0, 1]}\n") ==
        "s.yaml:1: parameter 'x' has two domains, 'uniform' and 'normal': keep one");
  CHECK(complaint("x: {uniform: [0]}\n") == "s.yaml:1: 'x.uniform' must be [lower, upper], not a list of 1");
  CHECK(complaint("x: {uniform: 3}\n") == "s.yaml:1: 'x.uniform' must be [lower, upper], not '3'");
  CHECK(complaint("x: {uniform: [0, b]}\n") == "s.yaml:1: 'x.uniform[1]' must be a number, not 'b'");
  CHECK(complaint("x: {integer: [0, 1.5]}\n") == "s.yaml:1: 'x.integer[1]' must be a whole number, not '1.5'");
  CHECK(complaint("x: {uniform: [0, .nan]}\n") == "s.yaml:1: 'x.uniform[1]' must be a number, not '.nan'");
  CHECK_THAT(complaint("x: {uniform: [0, .inf]}\n"), ContainsSubstring("a bound is infinite"));
  CHECK_THAT(complaint("x: {choice: []}\n"), ContainsSubstring("there are no options"));
  CHECK_THAT(complaint("x: {choice: [a, a]}\n"), ContainsSubstring("given twice"));
  CHECK(complaint("x: {discrete: [1, a]}\n") == "s.yaml:1: 'x.discrete[1]' must be a number, not 'a'");
  CHECK_THAT(complaint("x: {boolean: [true, true]}\n"), ContainsSubstring("must be [false, true]"));
  CHECK_THAT(complaint("x: {derived: [1]}\n"), ContainsSubstring("must be an expression"));
  CHECK(
      complaint("x: {derived: 2 * y}\ny: {uniform: [0, 1]}\n") ==
      "s.yaml:1: parameter 'x': the expression '2 * y' mentions 'y', which is not drawn before it: declare 'y' first");
  CHECK_THAT(complaint("y: 1\nx: {derived: y +}\n"),
             ContainsSubstring("s.yaml:2: parameter 'x': the expression 'y +'"));
  CHECK_THAT(complaint("y: 1\nx: {derived: y < 2}\n"), ContainsSubstring("a comparison where a number is needed"));
  CHECK_THAT(complaint("y: {uniform: [0, 1]}\nconstraints: uniform(0, 1) < y\n"), ContainsSubstring("only a derived"));
  CHECK_THAT(complaint("x: {constant: [1]}\n"), ContainsSubstring("must be one value, not a list"));
  CHECK(complaint("x: {uniform: [0, 1]}\nx: 3\n") == "s.yaml:2: the key 'x' is given twice: remove one of the two");
  CHECK(complaint("m: {x: 3}\nm.x: 4\n") ==
        "s.yaml:1: parameter 'm.x': this name is given twice: rename one of the two");
  CHECK_THAT(complaint("- x\n"), ContainsSubstring("must be a map"));
  CHECK_THAT(complaint(""), ContainsSubstring("is empty"));
  CHECK_THAT(complaint("'': 3\n"), ContainsSubstring("empty name"));
}

TEST_CASE("mistakes in conditions are told with file and line") {
  const std::string start = "optimizer: {choice: [sgd, adam]}\nn: {integer: [1, 4]}\n";
  CHECK(complaint(start + "x: {uniform: [0, 1], when: {optimiser: sgd}}\n") ==
        "s.yaml:3: parameter 'x': its condition is on 'optimiser', which is no parameter of this space: did you mean "
        "'optimizer'?");
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: {optimizer: sdg}}\n"),
             ContainsSubstring("s.yaml:3: parameter 'x': its condition is 'optimizer' = sdg, which can never be"));
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: {n: {betwen: [1, 2]}}}\n"),
             ContainsSubstring("did you mean 'between'?"));
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: {n: {between: [5, 6]}}}\n"),
             ContainsSubstring("s.yaml:3: "));
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: optimizer}\n"), ContainsSubstring("must be a map such as"));
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: {}}\n"), ContainsSubstring("must be a map such as"));
  CHECK_THAT(complaint(start + "x: {uniform: [0, 1], when: {n: []}}\n"), ContainsSubstring("lists no value"));
  CHECK_THAT(complaint("a: {boolean: [], when: {b: true}}\nb: {boolean: [], when: {a: true}}\n"),
             ContainsSubstring("s.yaml:1: parameter 'a': its conditions form a cycle"));
}

TEST_CASE("constraints compute") {
  for (const char* yes : {"a < b",
                          "a <= 2",
                          "b >= 3.5",
                          "a == 2",
                          "a != 3",
                          "a + b == 5.5",
                          "a - b == -1.5",
                          "a * b == 7",
                          "b / a == 1.75",
                          "a ^ 3 == 8",
                          "-a ^ 2 == -4",
                          "2 ^ 3 ^ 2 == 512",
                          "2 ** -1 == 0.5",
                          "1 + 2 * 3 == 7",
                          "(1 + 2) * 3 == 9",
                          "10 - 3 - 2 == 5",
                          "0 < a < b <= 3.5",
                          "c == red",
                          "c == \"red\"",
                          "c != blue",
                          "c != \"4 2\"",
                          "d",
                          "d == true",
                          "d != false",
                          "not (a > b)",
                          "!(a > b)",
                          "a > b or c == red",
                          "a < b and d",
                          "a > 1 && b > 1 || false",
                          "true",
                          "log(exp(a)) > 1.99 and log(exp(a)) < 2.01",
                          "sqrt(n) == 2",
                          "n == 4",
                          "log2(8) == 3",
                          "log10(100) == 2",
                          "min(a, b) == 2",
                          "max(a, b, 7) == 7",
                          "abs(-3) == 3",
                          "floor(b) == 3",
                          "ceil(b) == 4",
                          "e < 0",
                          "1e3 == 1000",
                          "`a` == 2",
                          ".5 < 1",
                          "not not d",
                          "- - a == 2"}) {
    INFO(yes);
    CHECK(holds(yes));
  }
  for (const char* no : {"a > b", "a < 2", "c == blue", "c != red", "not d", "d == false", "0 < b < a", "a > b and d",
                         "false", "log(-1) < 5", "log(-1) != 5", "0 / 0 == 0", "1 < 0 or 2 < 1", "n == 1"}) {
    INFO(no);
    CHECK(!holds(no));
  }
}

TEST_CASE("mistakes in constraints are told with what was expected") {
  const auto wrong = [](const std::string& constraint) {
    return complaint("a: {integer: [0, 9]}\nc: {choice: [red, blue]}\nconstraints:\n  - \"" + constraint + "\"\n");
  };
  CHECK(wrong("a < hiden") ==
        "s.yaml:4: the constraint 'a < hiden' mentions 'hiden', which is no parameter; known here: a, c");
  CHECK(
      wrong("a <") ==
      "s.yaml:4: the constraint 'a <' is not understood at its end: a number, a parameter or a parenthesis is expected "
      "there");
  CHECK(wrong("a < 3 3") ==
        "s.yaml:4: the constraint 'a < 3 3' is not understood at '3' (character 7): an operator or the end is expected "
        "there");
  CHECK_THAT(wrong("(a < 3"), ContainsSubstring("a closing parenthesis is expected"));
  CHECK_THAT(wrong("a + 1"), ContainsSubstring("compares nothing"));
  CHECK_THAT(wrong("c < 3"), ContainsSubstring("uses 'c' as a number, but it can be 'red'"));
  CHECK_THAT(wrong("c == green"), ContainsSubstring("which it can never be: it must be one of red, blue"));
  CHECK_THAT(wrong("a = 3"), ContainsSubstring("at '=' (character 3)"));
  CHECK_THAT(wrong("(a < 3) + 1 < 2"), ContainsSubstring("uses a comparison where a number is needed"));
  CHECK_THAT(wrong("a and a < 3"), ContainsSubstring("uses a number where a comparison is needed"));
  CHECK_THAT(wrong("min(a) < 3"), ContainsSubstring("a comma is expected"));
  CHECK_THAT(wrong("3x < a"), ContainsSubstring("at '3'"));
  CHECK_THAT(wrong("`a < 3"), ContainsSubstring("a closing quote"));
  CHECK_THAT(wrong(std::string(200, '(') + "a < 3"), ContainsSubstring("nested more than 50 deep"));
  CHECK_THAT(wrong(std::string(500, '-') + "a < 3"), ContainsSubstring("nested more than 50 deep"));
  CHECK_THAT(wrong(std::string(3000, ' ') + "a < 3"), ContainsSubstring("longer than 2000 characters"));
  CHECK_THAT(complaint("a: 1\nconstraints: [a < 2, a < 2]\n"), ContainsSubstring("given twice"));
  CHECK_THAT(complaint("a: 1\nconstraints: {a: 1}\n"), ContainsSubstring("must be a list"));
  CHECK(complaint("a: 1\nconstraints: a < 2\n") == "no error");
}

TEST_CASE("arbitrary bytes end in a space or in an Error, and in nothing else") {
  ht::Rng rng(5);
  const std::string seeds[] = {full,
                               "a: {integer: [0, 9]}\nconstraints: ['0 < a ^ 2 and not (a == 3 or -a >= min(a, 1))']\n",
                               "a: &x {choice: [1, b]}\nc: *x\nd: {uniform: [0, 1], when: {a: {between: [0, 1]}}}\n"};
  constexpr std::string_view alphabet = "[]{}:,&*!|>'\"%@`#- \n\t?x0.1e<=()^\x04\xff\xc3~";
  int spaces = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = seeds[pick(rng, 3)];
    for (int edits = pick(rng, 4); edits >= 0; --edits) {
      const auto at = static_cast<std::size_t>(pick(rng, static_cast<int>(text.size())));
      const char c = alphabet[static_cast<std::size_t>(pick(rng, static_cast<int>(alphabet.size())))];
      switch (pick(rng, 4)) {
        case 0: text[at] = c; break;
        case 1: text.insert(at, 1, c); break;
        case 2: text.erase(at, static_cast<std::size_t>(pick(rng, 20)) + 1); break;
        default: text.insert(at, text.substr(static_cast<std::size_t>(pick(rng, static_cast<int>(text.size()))), 30));
      }
      if (text.empty()) text = "a";
    }
    try {
      const auto space = read(text);
      ++spaces;
      const auto point = space.from_unit(std::vector<double>(space.size(), 0.5), rng);
      REQUIRE(space.invalid(point).value_or("") == "");
      static_cast<void>(space.feasible(point));
      const auto again = read(space.describe());
      REQUIRE(again.describe() == space.describe());
    } catch (const ht::Error& error) {
      INFO(text);
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
  CHECK(spaces > 50);  // else the edits are too wild to test anything
}

TEST_CASE("priors of the user") {
  const auto space = read(
      "lr: {log_uniform: [1.0e-5, 0.1], prior: 3.0e-4}\ndepth: {integer: [1, 9], prior: {value: 3, spread: 0.1}}\n"
      "size: {ordinal: [small, medium, large], prior: medium}\nopt: {choice: [sgd, adam, 3], prior: adam}\n"
      "more: {choice: [16, 32, 64], prior: {16: 0.5, 64: 0.25}}\nflag: {boolean: [], prior: {true: 0.9}}\n");
  const std::string canonical = R"(lr: {log_uniform: [1e-05, 0.1], prior: 0.0003}
depth: {integer: [1, 9], prior: {value: 3, spread: 0.1}}
size: {ordinal: [small, medium, large], prior: medium}
opt: {choice: [sgd, adam, 3], prior: adam}
more: {choice: [16, 32, 64], prior: {16: 0.5, 64: 0.25}}
flag: {boolean: [false, true], prior: {true: 0.9}}
)";
  CHECK(space.describe() == canonical);
  CHECK(read(canonical).describe() == canonical);
  CHECK(space.has_prior());
  const ht::Point good = space.point({{"lr", 3e-4},
                                      {"depth", std::int64_t{3}},
                                      {"size", std::string("medium")},
                                      {"opt", std::string("adam")},
                                      {"more", std::int64_t{16}},
                                      {"flag", true}});
  ht::Point bad = good;
  CHECK(space.log_prior(good) > 0);
  bad[5] = 0;
  CHECK(space.log_prior(good) - space.log_prior(bad) == Approx(std::log(9)));
  bad = good;
  bad[4] = 1;
  CHECK(space.log_prior(good) - space.log_prior(bad) == Approx(std::log(2)));  // 32 has the 0.25 that are left
}

TEST_CASE("mistakes in priors, with their lines") {
  CHECK(complaint("a: 1\nlr: {uniform: [0, 1], prior: 2}") ==
        "s.yaml:2: parameter 'lr': its prior is 2, which it can never be: it must be a number in [0, 1]");
  CHECK(complaint("lr: {uniform: [0, 1], prior: [1]}").starts_with("s.yaml:1: 'lr.prior' must be a value that is"));
  CHECK(complaint("lr: {uniform: [0, 1], prior: {value: 0.5, sprad: 1}}").find("did you mean 'spread'") !=
        std::string::npos);
  CHECK(complaint("lr: {uniform: [0, 1], prior: {value: 0.5, spread: wide}}") ==
        "s.yaml:1: 'lr.prior.spread' must be a number, not 'wide'");
  CHECK(complaint("o: {choice: [a, b], prior: {c: 0.5}}") ==
        "s.yaml:1: parameter 'o': its prior is c, which it can never be: it must be one of a, b");
  CHECK(complaint("o: {grid: [1, 2], prior: 1}").find("every value of a grid is tried") != std::string::npos);
}
