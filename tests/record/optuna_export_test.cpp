// What the Python tests do not reach: errors, and parameters without a domain that Optuna knows.
#include "record_support.hpp"
#include "support/test.hpp"

#include <hypertune/record/front.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/optuna_export.hpp>

#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

namespace {
// Trial t reports values[t], each with a second metric, and completes.
void write(const std::filesystem::path& directory, const std::vector<ht::Objective>& objectives,
           const std::vector<std::vector<std::pair<double, double>>>& trials) {
  auto journal = ht::Journal::open(directory);
  ht::record::ExperimentStarted started;
  started.name = "exported";
  started.objectives = objectives;
  journal.append(1, std::move(started));
  for (ht::TrialId t = 0; t < std::ssize(trials); ++t) {
    journal.append(2, ht::record::TrialCreated{t, {}, ht::Params{{"lr", 0.01}}, false});
    journal.append(2, ht::record::TrialStarted{t, 0, 0, "here", {}, {}});
    int step = 0;
    for (const auto& [accuracy, size] : trials[static_cast<std::size_t>(t)])
      journal.append(3, ht::record::TrialReported{t, 0, step++, {{"accuracy", accuracy}, {"size", size}}});
    journal.append(4, ht::record::TrialEnded{t, ht::TrialState::completed, std::nullopt});
  }
  journal.flush();
}

std::vector<std::vector<double>> exported(const std::filesystem::path& directory, const std::filesystem::path& file) {
  ht::export_optuna(directory, file);
  ht::detail::Database db(file.string(), file.string(), SQLITE_OPEN_READONLY);
  ht::detail::Statement rows(db, "SELECT trial_id, value FROM trial_values ORDER BY trial_id, objective", "read");
  std::vector<std::vector<double>> out(ht::Results::read(directory).size());
  while (rows.step()) out.at(static_cast<std::size_t>(rows.integer(0) - 1)).push_back(rows.real(1));
  return out;
}
}  // namespace

TEST_CASE("a trial is exported with the values that it counts with") {
  support::TemporaryFolder folder;
  const std::vector<std::vector<std::pair<double, double>>> trials{
      {{0.9, 5}, {0.6, 3}}, {{0.7, 9}, {0.8, 8}}, {{0.5, 2}, {0.4, 4}}};
  write(folder.path() / "one", {ht::maximize("accuracy")}, trials);
  const auto one = ht::Results::read(folder.path() / "one");
  const auto values = exported(folder.path() / "one", folder.path() / "one.db");
  CHECK(values == std::vector<std::vector<double>>{{0.9}, {0.8}, {0.5}});
  CHECK(one.best().trial == 0);  // … which has the greatest of them

  write(folder.path() / "two", {ht::maximize("accuracy"), ht::minimize("size")}, trials);
  const auto two = ht::Results::read(folder.path() / "two");
  const auto pairs = exported(folder.path() / "two", folder.path() / "two.db");
  CHECK(pairs == std::vector<std::vector<double>>{{0.6, 3}, {0.8, 8}, {0.4, 4}});
  std::vector<std::vector<double>> losses;
  for (const auto& pair : pairs) losses.push_back({-pair[0], pair[1]});
  std::vector<ht::TrialId> front;
  for (const std::size_t i : ht::pareto_front(losses)) front.push_back(static_cast<ht::TrialId>(i));
  CHECK(front == ht::pareto_front(two));  // Optuna's front is ours
}

TEST_CASE("an export does not overwrite, and leaves nothing half done") {
  support::TemporaryFolder folder;
  const auto file = folder.path() / "o.db";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("there is no experiment in"));
  CHECK(!std::filesystem::exists(file));
  std::ofstream(file) << "mine";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("exists already"));
}
