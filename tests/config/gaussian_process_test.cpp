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
  const auto full = "{type: gp, startup_trials: 5, max_observations: 100, prior_confidence: 20, max_concurrent: 4}";
  REQUIRE(searcher_from_yaml(load_yaml_text(full, "sweep.yaml")).name() == "limit(gp, 4)");
  REQUIRE_THAT(mistake("{type: gp, max_observation: 100}"), ContainsSubstring("max_observations"));
  REQUIRE_THAT(mistake("{type: gp, max_observations: 3}"), ContainsSubstring("max_observations is 3"));
  REQUIRE_THAT(mistake("{type: gp, startup_trials: -1}"), ContainsSubstring("sweep.yaml"));
}
