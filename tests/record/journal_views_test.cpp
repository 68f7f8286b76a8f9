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
        "0|completed|{\"lr\": 0.5, \"optimizer\": \"it's \\\"adam\\\"\"}|2|0.25|0|NULL|2.0|6.0\n"
        "1|pending|{\"lr\": 0.25}|0|NULL|1|out of \xEF\xBF\xBD memory|2.0|NULL\n"
        "2|pending|{}|0|NULL|0|NULL|2.0|NULL\n");
  CHECK(rows(folder, "SELECT json_extract(params, '$.lr') FROM trials WHERE trial = 0") == "0.5\n");
  CHECK(rows(folder, "SELECT trial, step, metric, value FROM reports ORDER BY sequence, metric") ==
        "0|0|accuracy|0.5\n0|0|loss|Inf\n0|0|x|NULL\n0|1|loss|0.25\n");
  CHECK(rows(folder, "SELECT event, count(*) FROM events GROUP BY event ORDER BY event LIMIT 3") ==
        "attempt failed|1\nexperiment started|1\nreport|2\n");
}
