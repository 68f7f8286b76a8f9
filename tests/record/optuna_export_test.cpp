// What the Python tests do not reach: errors, and parameters without a domain that Optuna knows.
#include "record_support.hpp"
#include "support/test.hpp"

#include <hypertune/record/optuna_export.hpp>

#include <fstream>
#include <limits>

namespace ht = hypertune;
namespace {
std::string inferred(const std::vector<ht::Value>& values, const char* line = nullptr) {
  ht::detail::optuna::Distribution distribution;
  if (line != nullptr) distribution = ht::detail::optuna::Distribution(ht::detail::optuna::SpaceText::read(line).at(0));
  for (const auto& value : values) distribution.take(value);
  return distribution.json();
}
}  // namespace

TEST_CASE("Optuna's distribution of a parameter contains every recorded value") {
  CHECK_THAT(inferred({std::int64_t{3}, std::int64_t{-2}}), ContainsSubstring(R"("step": 1, "low": -2, "high": 3)"));
  CHECK_THAT(inferred({std::int64_t{3}, 0.5}), ContainsSubstring(R"("low": 0.5, "high": 3, "log": false)"));
  CHECK_THAT(inferred({std::int64_t{3}, std::string("x")}), ContainsSubstring(R"("choices": [3, "x"])"));
  CHECK_THAT(inferred({2.0}, "a: {log_uniform: [0.5, 1]}"), ContainsSubstring(R"("low": 0.5, "high": 2, "log": true)"));
  CHECK_THAT(inferred({-2.0}, "a: {log_uniform: [0.5, 1]}"), ContainsSubstring(R"("log": false)"));
  CHECK_THAT(inferred({std::string("z")}, "a: {choice: [x, \"y]\"]}"), ContainsSubstring(R"(["x", "y]", "z"])"));
  CHECK_THAT(inferred({1.5}, "a: {normal: [0, 1]}"), ContainsSubstring(R"("low": 1.5, "high": 1.5)"));
}

TEST_CASE("lines of a space that cannot be read are left out, whatever they hold") {
  using ht::detail::optuna::SpaceText;
  for (const char* text :
       {"", "\n\n", "a", "a: ", "a: {", "a: {choice: [", "a: {choice: [x", "\"a", "a: {choice: [\"\\"})
    for (const auto& line : SpaceText::read(text)) CHECK(line.items.empty());
  const auto lines = SpaceText::read(
      "\"a b\": {int: [1, 9], quantum: 2, when: {c: true}}\nconstraints: [\"x\"]\nc: {boolean: [false, true]}\n");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].name == "a b");
  CHECK(lines[0].quantum == 2);
  CHECK(lines[1].word == "boolean");
}

TEST_CASE("an export does not overwrite, and leaves nothing half done") {
  support::TemporaryFolder folder;
  const auto file = folder.path() / "o.db";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("there is no experiment in"));
  CHECK(!std::filesystem::exists(file));
  std::ofstream(file) << "mine";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("exists already"));
}
