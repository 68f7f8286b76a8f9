// The Journal's file: its path, its tables, and the views for people who open it with sqlite3.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/record/detail/sqlite.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace hypertune::inline v0 {

/// The Journal's file in the folder of an experiment.
inline std::filesystem::path journal_path(const std::filesystem::path& directory) {
  return directory / "experiment.db";
}

/// Whether `directory` holds an experiment. An empty file, left by a crash before the first record, is not one.
inline bool has_journal(const std::filesystem::path& directory) {
  std::error_code error;
  const auto size = std::filesystem::file_size(journal_path(directory), error);
  return !error && size > 0;
}

namespace detail {

/// Error of kind `input` if the Journal's path is not a file (opening a pipe would wait forever).
inline void require_journal_file(const std::filesystem::path& directory) {
  std::error_code none;
  const auto path = journal_path(directory);
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail(Errc::input, "'{}' is {}, not a file: it was left as it is", path.string(),
         std::filesystem::is_directory(status) ? "a folder" : "a pipe, a socket or a device");
}

inline constexpr std::int64_t journal_application = 0x48547465;  // "HTte", in the file's header
// A file has the oldest version that can represent its contents, so that older programs can read it if they understand
// it: 5 if a number of workers was asked for (kind 18), 4 if a trial has several workers or they have changed (kind
// 17), 3 if attributes were set (kind 16) or a host was lost for good, 2 if a trial has taken over another one's state
// (kind 15), else 1.
inline constexpr std::int64_t journal_version = 5, first_version = 1;

// The `text` of a report of a program that had ended (TrialReported::over).
inline constexpr const char* report_of_ended = "the program had ended";

// One table that only grows, by ascending key: SQLite's fastest insert. `payload` is the authoritative form of all
// records but reports (see journal_codec.hpp), `text` a readable part of it. A report is stored in its columns: the
// first metric in `metric` and `value` (NULL: NaN), any further ones in `payload` as {"id of the name": value}. The
// `value` of a failed attempt is whether it counts against the trial (NULL in records of earlier versions). `value` has
// no declared type, because SQLite would store whole REALs as integers and lose the sign of zero. The `text` of a report
// is NULL, or report_of_ended (which older programs ignore).
inline constexpr const char* journal_schema = R"sql(
CREATE TABLE records(
  sequence INTEGER PRIMARY KEY,
  time     REAL NOT NULL,
  kind     INTEGER NOT NULL,
  trial    INTEGER,
  attempt  INTEGER,
  step     INTEGER,
  metric   INTEGER,
  value,
  text     TEXT,
  payload
);
CREATE TABLE names(id INTEGER PRIMARY KEY, name NOT NULL);
)sql";

// `failures` of `trials` is TrialResult::failure_count(). In records that do not say what counts, a preemption (the
// payload begins with 2) and a doubted failure (it ends with 2, without a host) are recognized; failures because of a
// lost host are not.
inline constexpr const char* journal_views = R"sql(
CREATE VIEW events AS
  SELECT sequence, time,
    CASE kind WHEN 1 THEN 'experiment started' WHEN 2 THEN 'trial created' WHEN 3 THEN 'trial started'
      WHEN 4 THEN 'report' WHEN 5 THEN 'checkpoint' WHEN 6 THEN 'checkpoint dropped' WHEN 7 THEN 'trial paused'
      WHEN 8 THEN 'attempt failed' WHEN 9 THEN 'trial completed' WHEN 10 THEN 'trial stopped'
      WHEN 11 THEN 'trial failed' WHEN 12 THEN 'host gained' WHEN 13 THEN 'host lost'
      WHEN 14 THEN 'experiment ended' WHEN 15 THEN 'trial mutated' WHEN 16 THEN 'attributes'
      WHEN 17 THEN 'trial resized' WHEN 18 THEN 'workers asked' ELSE kind END AS event,
    trial, attempt, step, text
  FROM records;

CREATE VIEW reports AS
  SELECT r.sequence, r.time, r.trial, r.attempt, r.step, n.name AS metric, r.value
  FROM records r JOIN names n ON n.id = r.metric WHERE r.kind = 4
  UNION ALL
  SELECT r.sequence, r.time, r.trial, r.attempt, r.step, n.name,
    CASE j.value WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999 WHEN 'NaN' THEN NULL ELSE j.value END
  FROM records r JOIN json_each(r.payload) j JOIN names n ON n.id = CAST(j.key AS INTEGER)
  WHERE r.kind = 4 AND r.payload IS NOT NULL;

CREATE VIEW attributes AS
  SELECT max(r.sequence) AS sequence, r.time, r.trial, j.key AS name, j.value
  FROM records r JOIN json_each(r.text) j WHERE r.kind = 16 GROUP BY r.trial, j.key;

CREATE VIEW trials AS
  SELECT c.trial,
    CASE s.kind WHEN 3 THEN 'running' WHEN 7 THEN 'paused' WHEN 9 THEN 'completed' WHEN 10 THEN 'stopped'
      WHEN 11 THEN 'failed' ELSE 'pending' END AS state,
    coalesce(m.text, c.text) AS params,
    coalesce(p.steps, 0) AS steps,
    p.last_value,
    coalesce(f.failures, 0) AS failures,
    CASE WHEN s.kind IN (8, 10, 11) THEN s.text END AS cause,
    c.time AS created,
    CASE WHEN s.kind IN (9, 10, 11) THEN s.time END AS ended,
    coalesce(a.attempts, 0) AS attempts
  FROM records c
  JOIN (SELECT trial, kind, text, time, max(sequence) FROM records
        WHERE kind IN (2, 3, 7, 8, 9, 10, 11) GROUP BY trial) s ON s.trial = c.trial
  LEFT JOIN (SELECT trial, step + 1 AS steps, value AS last_value, max(sequence) FROM records
             WHERE kind = 4 GROUP BY trial) p ON p.trial = c.trial
  LEFT JOIN (SELECT trial, count(*) AS failures FROM records
             WHERE kind = 8 AND coalesce(value, substr(payload, 1, 1) <> x'02' AND substr(payload, -1) <> x'02')
             GROUP BY trial) f ON f.trial = c.trial
  LEFT JOIN (SELECT trial, count(*) AS attempts FROM records WHERE kind = 3 GROUP BY trial) a ON a.trial = c.trial
  LEFT JOIN (SELECT trial, text, max(sequence) FROM records WHERE kind = 15 GROUP BY trial) m ON m.trial = c.trial
  WHERE c.kind = 2;
)sql";

/// Throws unless the open database is a Journal that this program can read. Returns false if it is still empty.
inline bool check_journal(Database& db) {
  const std::int64_t application = query_integer(db, "PRAGMA application_id");
  if (query_integer(db, "SELECT count(*) FROM sqlite_schema") == 0 && application == 0) return false;
  if (application != journal_application)
    fail(Errc::corrupt, "'{}' is an SQLite database, but no hypertune journal; it was left as it is", db.path());
  const std::int64_t version = query_integer(db, "PRAGMA user_version");
  if (version > journal_version)
    fail(Errc::input,
         "'{}' was written by a newer hypertune (format {}, this program reads up to {}): update hypertune", db.path(),
         version, journal_version);
  return true;
}

}  // namespace detail
}  // namespace hypertune::inline v0
