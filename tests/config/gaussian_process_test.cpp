#include "support/test.hpp"

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/yaml.hpp>

using namespace hypertune;

namespace {
std::string mistake(const std::string& text) {
  try {
    searcher_from_yaml(load_yaml_text(text, "sweep.yaml"));
  } catch (const Error& e) { return e.what(); }
  return "";
}
}  // namespace

TEST_CASE("gp by name, with its options") {
  REQUIRE(searcher_from_yaml(load_yaml_text("gp", "sweep.yaml")).name() == "gp");
  const auto full = "{type: gp, startup: 5, local: 100, prior_confidence: 20, limit: 4}";
  REQUIRE(searcher_from_yaml(load_yaml_text(full, "sweep.yaml")).name() == "limit(gp, 4)");
  REQUIRE_THAT(mistake("{type: gp, locla: 100}"), ContainsSubstring("local"));
  REQUIRE_THAT(mistake("{type: gp, local: 3}"), ContainsSubstring("'local' is 3"));
  REQUIRE_THAT(mistake("{type: gp, startup: -1}"), ContainsSubstring("sweep.yaml"));
}
