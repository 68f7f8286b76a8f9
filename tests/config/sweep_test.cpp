// What a sweep says beside its space.
#include "support/test.hpp"

#include <hypertune/config/sweep.hpp>

#include <string>

using namespace hypertune;

namespace {

constexpr const char* start =
    "trial: {command: [./train]}\nspace: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\nsamples: 3\n";

Sweep read(const std::string& more) { return sweep_from_yaml(load_yaml_text(start + more, "s.yaml"), false); }

std::string complaint(const std::string& more) {
  try {
    read(more);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::input);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("constraints on metrics") {
  const auto sweep = read("constraints: {latency_ms: {at_most: 5}, recall: {at_least: 0.9, at_most: 1}}\n");
  CHECK(sweep.options.constraints ==
        std::vector<MetricBound>{at_most("latency_ms", 5), at_least("recall", 0.9), at_most("recall", 1)});
  CHECK(complaint("constraints: ['a < 1']").starts_with("s.yaml:6: 'constraints' must be bounds on metrics"));
  CHECK(complaint("constraints: {latency: 5}").starts_with("s.yaml:6: 'constraints.latency' must be {at_most: …}"));
  CHECK(complaint("constraints: {latency: {atmost: 5}}").find("did you mean 'at_most'") != std::string::npos);
  CHECK(complaint("constraints: {latency: {at_most: .inf}}").starts_with("s.yaml:6: bound on 'latency'"));
}

TEST_CASE("tpe by name, with its options") {
  CHECK(read("search: tpe\n").options.search.name() == "tpe");
  const auto sweep = read(
      "search: {type: tpe, startup: 5, share: 0.2, most_good: 10, candidates: 24, prior_strength: 0, repeat: 2}\n");
  CHECK(sweep.options.search.name() == "repeat(tpe, 2)");
  CHECK(sweep.options.search.multi_objective());
  CHECK(complaint("search: {type: tpe, candiates: 3}").find("did you mean 'candidates'") != std::string::npos);
  CHECK(complaint("search: {type: tpe, share: 2}") == "s.yaml:6: tpe: share is 2: it must be between 0 and 1");
  CHECK(complaint("search: {type: tpe, candidates: 0}").find("candidates 0") != std::string::npos);
}
