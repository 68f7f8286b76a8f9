// What the Python tests do not reach: errors, and parameters without a domain that Optuna knows.
#include "record_support.hpp"
#include "support/test.hpp"

#include <hypertune/record/detail/front.hpp>
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

TEST_CASE("what Optuna's numbers cannot hold becomes a choice") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THAT(inferred({nan, 1.0, nan, -infinity}), ContainsSubstring(R"("choices": [NaN, 1.0, -Infinity])"));
  CHECK_THAT(inferred({infinity}, "a: {choice: [nan, x, inf]}"),
             ContainsSubstring(R"("choices": [NaN, "x", Infinity])"));
  CHECK_THAT(inferred({std::string("NaN"), nan}), ContainsSubstring(R"("choices": ["NaN", NaN])"));
  const std::int64_t large = 9'007'199'254'740'993;
  CHECK_THAT(inferred({std::int64_t{1}, large}), ContainsSubstring("9007199254740993]"));
  // Values that were taken before the first one that needs a choice have a place, too, however many they are.
  ht::detail::optuna::Distribution distribution;
  for (int i = 0; i < 100; ++i) distribution.take(0.25 * i);
  distribution.take(nan);
  CHECK(distribution.stored(0.0) == 0);
  CHECK(distribution.stored(24.75) == 99);
  CHECK(distribution.stored(nan) == 100);
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

namespace {
using Reports = std::vector<ht::Metrics>;

// Trial t has these reports; `ends` says how it ended (nullptr: completed).
void write_bounded(const std::filesystem::path& directory, const std::vector<ht::Objective>& objectives,
                   const std::vector<std::pair<Reports, const char*>>& trials) {
  auto journal = ht::Journal::open(directory);
  ht::record::ExperimentStarted started;
  started.name = "bounded";
  started.objectives = objectives;
  started.constraints = {{"memory", ht::Mode::minimize, 100}};
  journal.append(1, std::move(started));
  for (ht::TrialId t = 0; t < std::ssize(trials); ++t) {
    const auto& [reports, ends] = trials[static_cast<std::size_t>(t)];
    journal.append(2, ht::record::TrialCreated{t, {}, ht::Params{{"lr", 0.01}}, false});
    journal.append(2, ht::record::TrialStarted{t, 0, 0, "here", {}, {}});
    for (int step = 0; step < std::ssize(reports); ++step)
      journal.append(3, ht::record::TrialReported{t, 0, step, reports[static_cast<std::size_t>(step)]});
    if (ends == nullptr)
      journal.append(4, ht::record::TrialEnded{t, ht::TrialState::completed, std::nullopt});
    else
      journal.append(
          4, ht::record::TrialEnded{t, ht::TrialState::stopped, ht::Cause{ht::FailureSource::user, ends, false}});
  }
  journal.flush();
}

// Of each trial: its state, values and constraints, as an export has them.
std::vector<std::string> rows(const std::filesystem::path& directory, const std::filesystem::path& file) {
  ht::export_optuna(directory, file);
  ht::detail::Database db(file.string(), file.string(), SQLITE_OPEN_READONLY);
  ht::detail::Statement row(
      db,
      "SELECT state || coalesce((SELECT group_concat(' ' || coalesce(value, value_type), '') FROM trial_values v WHERE "
      "v.trial_id = t.trial_id), '') || coalesce((SELECT ' ' || value_json FROM trial_system_attributes a WHERE "
      "a.trial_id = t.trial_id AND key = 'constraints'), '') || coalesce((SELECT ' unknown ' || value_json FROM "
      "trial_user_attributes a WHERE a.trial_id = t.trial_id AND key = 'hypertune:unknown_constraints'), '') "
      "FROM trials t ORDER BY number",
      "read");
  std::vector<std::string> out;
  while (row.step()) out.emplace_back(row.bytes(0));
  return out;
}
}  // namespace

TEST_CASE("constraints are exported as they decided which report is the best") {
  support::TemporaryFolder folder;
  const auto rows_of = [&](const char* name, const auto& objectives, const auto& trials) {
    write_bounded(folder.path() / name, objectives, trials);
    return rows(folder.path() / name, folder.path() / (std::string(name) + ".db"));
  };
  const std::vector<ht::Objective> loss{ht::minimize("loss")}, both{ht::minimize("loss"), ht::minimize("size")};
  const std::vector<std::pair<Reports, const char*>> trials{
      {{{{"loss", 0.5}, {"memory", 90}}, {{"loss", 0.4}, {"memory", 120}}}, nullptr},  // its best report meets it
      {{{{"loss", 0.1}}}, nullptr},                                                    // not known
      {{{{"loss", 0.2}, {"memory", 130}}}, nullptr},
      {{{{"loss", 0.3}}, {{"memory", 95}, {"loss", 9.0}}}, "stopped by asha at rung 1"},  // known later: it is the best
      {{{{"loss", 0.6}, {"memory", 80}}}, "stopped by asha at rung 1"}};
  CHECK(rows_of("one", loss, trials) ==
        std::vector<std::string>{"COMPLETE 0.5 [-10.0]", R"(COMPLETE 0.1 [30.0] unknown ["memory"])",
                                 "COMPLETE 0.2 [30.0]", "COMPLETE 0.3 [-5.0]", "PRUNED 0.6 [-20.0]"});
  CHECK(ht::Results::read(folder.path() / "one").best().trial == 3);
  // Constraints of which none is known decide nothing. Optuna 5.0 and 4.9 read none otherwise.
  const std::vector<std::pair<Reports, const char*>> unknown{{{{{"loss", 0.5}}}, nullptr},
                                                             {{{{"loss", 0.1}}}, nullptr}};
  CHECK(rows_of("unknown", loss, unknown) == std::vector<std::string>{"COMPLETE 0.5", "COMPLETE 0.1"});
  CHECK(ht::Results::read(folder.path() / "unknown").best().trial == 1);
  // With several objectives it is the last value of each metric, which the last report may lack.
  const std::vector<std::pair<Reports, const char*>> several{
      {{{{"loss", 0.1}, {"size", 1}, {"memory", 90}}, {{"memory", 120}}, {{"loss", 0.2}, {"size", 1}}}, nullptr},
      {{{{"loss", 0.3}, {"size", 2}, {"memory", 90}}}, nullptr},
      {{{{"loss", 0.4}, {"size", 1}, {"memory", 100}}}, "stopped by asha at rung 1"}};
  CHECK(rows_of("several", both, several) ==
        std::vector<std::string>{"COMPLETE 0.2 1.0 [20.0]", "COMPLETE 0.3 2.0 [-10.0]", "COMPLETE 0.4 1.0 [0.0]"});
  CHECK(ht::pareto_front(ht::Results::read(folder.path() / "several")) == std::vector<ht::TrialId>{1, 2});
}

TEST_CASE("an infinite value is not exported where it would be Optuna's best") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  support::TemporaryFolder folder;
  const auto states = [&](const char* name, const ht::Objective& objective, const std::vector<double>& values) {
    std::vector<std::vector<std::pair<double, double>>> trials;
    for (const double value : values) trials.push_back({{value, 0}});
    write(folder.path() / name, {objective}, trials);
    return rows(folder.path() / name, folder.path() / (std::string(name) + ".db"));
  };
  CHECK(states("max", ht::maximize("accuracy"), {infinity, 0.5, -infinity}) ==
        std::vector<std::string>{"FAIL", "COMPLETE 0.5", "COMPLETE INF_NEG"});
  CHECK(states("min", ht::minimize("accuracy"), {infinity, 0.5, -infinity}) ==
        std::vector<std::string>{"COMPLETE INF_POS", "COMPLETE 0.5", "FAIL"});
  CHECK(states("none", ht::minimize("accuracy"), {infinity, -infinity}) == std::vector<std::string>{"FAIL", "FAIL"});
}

TEST_CASE("an export does not overwrite, and leaves nothing half done") {
  support::TemporaryFolder folder;
  const auto file = folder.path() / "o.db";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("there is no experiment in"));
  CHECK(!std::filesystem::exists(file));
  std::ofstream(file) << "mine";
  CHECK_THROWS_WITH(ht::export_optuna(folder, file), ContainsSubstring("exists already"));
}
