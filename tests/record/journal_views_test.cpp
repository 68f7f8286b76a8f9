// What people see who open the Journal with sqlite3.
#include "record_support.hpp"
#include "support/test.hpp"

namespace ht = hypertune;

namespace {

std::string rows(const std::filesystem::path& folder, const char* sql) {
  const std::string path = ht::journal_path(folder);
  ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
  sqlite3_stmt* raw = nullptr;
  REQUIRE(sqlite3_prepare_v2(db.get(), sql, -1, &raw, nullptr) == SQLITE_OK);
  std::string out;
  while (sqlite3_step(raw) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(raw); ++i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
      out += (i > 0 ? "|" : "") + std::string(text == nullptr ? "NULL" : text);
    }
    out += '\n';
  }
  sqlite3_finalize(raw);
  return out;
}

}  // namespace

TEST_CASE("the views show trials, reports and events") {
  using namespace ht::record;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const support::TemporaryFolder folder;
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, ExperimentStarted{"digits", {}, "", "", "", "", 3, 1});
    journal.append(2, TrialCreated{0, {}, {{"lr", 0.5}, {"optimizer", std::string("it's \"adam\"")}}});
    journal.append(2, TrialCreated{1, {}, {{"lr", 0.25}}});
    journal.append(2, TrialCreated{2, {}, {}});
    journal.append(3, TrialStarted{0, 0, 0, "localhost", {}, {}});
    journal.append(4, TrialReported{0, 0, 0, {{"accuracy", 0.5}, {"loss", inf}, {"x", std::nan("")}}});
    journal.append(5, TrialReported{0, 0, 1, {{"loss", 0.25}}});
    journal.append(6, TrialEnded{0, ht::TrialState::completed, {}});
    journal.append(7, TrialStarted{1, 0, 0, "localhost", {}, {}});
    journal.append(8, AttemptFailed{1, 0, {ht::FailureSource::user, "out of \xff memory"}, true});
  }
  CHECK(rows(folder, "SELECT * FROM trials ORDER BY trial") ==
        "0|completed|{\"lr\": 0.5, \"optimizer\": \"it's \\\"adam\\\"\"}|2|0.25|0|NULL|2.0|6.0|1\n"
        "1|pending|{\"lr\": 0.25}|0|NULL|1|out of \xEF\xBF\xBD memory|2.0|NULL|1\n"
        "2|pending|{}|0|NULL|0|NULL|2.0|NULL|0\n");
  CHECK(rows(folder, "SELECT json_extract(params, '$.lr') FROM trials WHERE trial = 0") == "0.5\n");
  CHECK(rows(folder, "SELECT trial, step, metric, value FROM reports ORDER BY sequence, metric") ==
        "0|0|accuracy|0.5\n0|0|loss|Inf\n0|0|x|NULL\n0|1|loss|0.25\n");
  CHECK(rows(folder, "SELECT event, count(*) FROM events GROUP BY event ORDER BY event LIMIT 3") ==
        "attempt failed|1\nexperiment started|1\nreport|2\n");
}

TEST_CASE("failures in SQL are those that count against the trial") {
  using namespace ht::record;
  const support::TemporaryFolder folder;
  const auto fail = [](ht::Journal& journal, ht::FailureSource source, std::optional<bool> counts,
                       bool doubted = false) {
    journal.append(3, TrialStarted{0, 0, 0, "a", {}, {}});
    journal.append(4, AttemptFailed{0, 0, {source, std::string(200, 'x')}, true, doubted, {}, counts});
  };
  const char* const sql = "SELECT attempts, failures FROM trials";
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, ExperimentStarted{"digits", {}, "", "", "", "", 3, 1});
    journal.append(2, TrialCreated{0, {}, {}});
    fail(journal, ht::FailureSource::user, true);
    fail(journal, ht::FailureSource::user, false, true);
    fail(journal, ht::FailureSource::infrastructure, true);
    fail(journal, ht::FailureSource::infrastructure, false);  // its host was lost
    fail(journal, ht::FailureSource::preemption, false);
  }
  CHECK(rows(folder, sql) == "5|2\n");
  std::vector<std::optional<bool>> read;
  ht::read_journal(folder, [&](const ht::Record& record) {
    if (const auto* failed = std::get_if<AttemptFailed>(&record.what)) read.push_back(failed->counts);
  });
  CHECK(read == std::vector<std::optional<bool>>{true, false, true, false, false});

  SECTION("records that do not say what counts, of an earlier version, tell most of it") {
    {
      auto journal = ht::Journal::open(folder);
      fail(journal, ht::FailureSource::user, {});
      fail(journal, ht::FailureSource::user, {}, true);
      fail(journal, ht::FailureSource::infrastructure, {});
      fail(journal, ht::FailureSource::preemption, {});
    }
    CHECK(rows(folder, sql) == "9|4\n");
    CHECK(ht::Results::read(folder).trial(0).failure_count() == 5);  // with the one above whose host was lost
  }
  SECTION("views of an earlier version are made anew by the next record") {
    {
      const std::string path = ht::journal_path(folder);
      ht::detail::Database db(path, path, SQLITE_OPEN_READWRITE);
      db.execute("DROP VIEW trials; CREATE VIEW trials AS SELECT count(*) AS failures FROM records WHERE kind = 8");
    }
    CHECK(rows(folder, "SELECT failures FROM trials") == "5\n");
    ht::Journal::open(folder).append(5, TrialEnded{0, ht::TrialState::stopped, {}});
    CHECK(rows(folder, sql) == "5|2\n");
  }
}
