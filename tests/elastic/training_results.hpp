// What came of a training of elastic_training.hpp, beside one that nothing disturbed.
#pragma once

#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

struct Ended {
  TrialState state = {};
  int failures = 0;
  std::vector<std::map<std::string, double>> reports;
  std::vector<std::string> changes = {};  ///< why its workers changed
  std::string cause = {};                 ///< of its failure
};

inline Ended ended_of(const Results& results) {
  const auto trial = results.trials()[0];
  Ended ended{.state = trial.state, .failures = trial.failures[0] + trial.failures[1], .reports = {}};
  if (trial.cause) ended.cause = trial.cause->text;
  results.history(0, [&](const Record& record) {
    const auto* reported = std::get_if<record::TrialReported>(&record.what);
    if (reported == nullptr) return;
    auto& metrics = ended.reports.emplace_back();
    for (const auto& [name, value] : reported->metrics) metrics[name] = value;
  });
  return ended;
}

inline void check_like(const Ended& run, const Ended& undisturbed) {
  CHECK(run.state == TrialState::completed);
  REQUIRE(run.reports.size() == undisturbed.reports.size());
  for (std::size_t i = 0; i < run.reports.size(); ++i) {
    INFO("report " << i);
    CHECK(run.reports[i].at("sum") == undisturbed.reports[i].at("sum"));
    CHECK(run.reports[i].at("once") == 1);
  }
}

}  // namespace hypertune::inline v0::test
