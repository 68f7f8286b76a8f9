// Exports an experiment as an Optuna storage, for optuna-dashboard and other programs that read one.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/journal_reader.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/optuna_distribution.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/record/sqlite.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::optuna {

// The tables of Optuna's RDBStorage in schema 12, revision v3.2.0.a, which Optuna 3.2 to 5.0 use.
inline constexpr const char* schema = R"sql(
CREATE TABLE studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));
CREATE TABLE version_info (version_info_id INTEGER NOT NULL, schema_version INTEGER, library_version VARCHAR(256),
  PRIMARY KEY (version_info_id), CHECK (version_info_id=1));
CREATE TABLE study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL,
  study_id INTEGER NOT NULL, objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id),
  UNIQUE (study_id, objective), FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER NOT NULL, study_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE trials (trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER,
  "key" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT,
  distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_values (trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL,
  value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id), UNIQUE (trial_id, objective),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  step INTEGER NOT NULL, intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL,
  PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  heartbeat DATETIME NOT NULL, PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
INSERT INTO version_info VALUES (1, 12, '3.2.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)sql";

/// UTC, in SQLAlchemy's format.
inline std::string datetime(Seconds time) {
  if (!std::isfinite(time) || std::fabs(time) > 2e11) time = 0;
  const auto micros = static_cast<std::int64_t>(std::llround(time * 1e6));
  const std::int64_t part = ((micros % 1'000'000) + 1'000'000) % 1'000'000;
  const auto seconds = static_cast<std::time_t>((micros - part) / 1'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return detail::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                        utc.tm_hour, utc.tm_min, utc.tm_sec, part);
}

/// Writes one study, in one transaction, into a file that nobody else sees yet.
class Export {
 public:
  Export(Database& db, const Results& results, std::string_view study) : db_(db), results_(results) {
    db_.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    db_.execute(schema);
    write_study(study.empty() ? std::string_view(results.experiment().name) : study);
    learn_distributions();
    for (const TrialResult& trial : results_.trials()) write(trial);
    if (results_.experiment().objectives.size() == 1) write_reports();
    db_.execute("COMMIT");
  }

 private:
  void write_study(std::string_view name) {
    const ExperimentInfo& info = results_.experiment();
    Statement study(db_, "INSERT INTO studies VALUES (1, ?1)", "write");
    study.bind_text(1, name.empty() ? "hypertune" : name);
    study.run();
    Statement direction(db_, "INSERT INTO study_directions (direction, study_id, objective) VALUES (?1, 1, ?2)",
                        "write");
    std::string names;
    for (std::size_t i = 0; i < info.objectives.size(); ++i) {
      direction.bind_text(1, info.objectives[i].mode == Mode::maximize ? "MAXIMIZE" : "MINIMIZE");
      direction.bind(2, static_cast<std::int64_t>(i));
      direction.run();
      append_json(names += i == 0 ? "[" : ", ", info.objectives[i].metric);
    }
    Statement system(db_, "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES (1, ?1, ?2)",
                     "write");
    names += "]";
    system.bind_text(1, "study:metric_names");
    system.bind_text(2, names);
    system.run();
    Statement user(db_, "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (1, ?1, ?2)", "write");
    for (const auto& [key, text] : {std::pair<const char*, const std::string&>("hypertune:searcher", info.searcher),
                                    {"hypertune:scheduler", info.scheduler},
                                    {"hypertune:space", info.space}}) {
      std::string json;
      append_json(json, text);
      user.bind_text(1, key);
      user.bind_text(2, json);
      user.run();
    }
    for (const auto& [name, value] : info.attributes) {
      std::string json;
      append_json(json, value);
      user.bind_text(1, name);
      user.bind_text(2, json);
      user.run();
    }
  }

  void learn_distributions() {
    for (const SpaceLine& line : SpaceText::read(results_.experiment().space))
      distributions_.insert_or_assign(line.name, Distribution(line));
    for (const TrialResult& trial : results_.trials())
      for (const auto& [name, value] : trial.params) distributions_[name].take(value);
    for (const auto& [name, distribution] : distributions_) json_[name] = distribution.json();
  }

  // The values that represent the trial, so that Optuna's best trial or front is ours: with one objective those of the
  // best report, with several those of the last one, which belong together (front.hpp).
  std::vector<double> values(const TrialResult& trial) const {
    const auto& objectives = results_.experiment().objectives;
    std::vector<double> out;
    for (const Objective& objective : objectives) {
      const auto best = objectives.size() == 1 ? results_.best_report(trial.trial, objective) : std::nullopt;
      const double* last = find_metric(trial.metrics, objective.metric);
      if (best)
        out.push_back(best->value);
      else if (last != nullptr && !std::isnan(*last))
        out.push_back(*last);
    }
    if (out.size() != objectives.size()) out.clear();
    return out;
  }

  // Whether the scheduler (or a changed space) stopped it. A trial that a stop condition ended has done its work and
  // may be the best; Optuna does not allow that for a pruned trial.
  static bool cut(const TrialResult& trial) { return !trial.cause || record::gave_up(trial.cause->text); }

  void write(const TrialResult& trial) {
    const std::vector<double> found = values(trial);
    // Optuna has no completed trials without a value.
    const char* state = "WAITING";
    if (trial.state == TrialState::completed) state = found.empty() ? "FAIL" : "COMPLETE";
    if (trial.state == TrialState::stopped) state = found.empty() || cut(trial) ? "PRUNED" : "COMPLETE";
    if (trial.state == TrialState::failed) state = "FAIL";
    if (trial.state == TrialState::running || trial.state == TrialState::paused) state = "RUNNING";
    const std::int64_t id = trial.trial + 1;
    const std::string begin = datetime(trial.started.value_or(trial.created)), end = datetime(trial.ended.value_or(0));
    trial_.bind(1, id);
    trial_.bind(2, trial.trial);
    trial_.bind_text(3, state);
    if (trial.state == TrialState::pending)
      trial_.bind_null(4);
    else
      trial_.bind_text(4, begin);
    if (trial.ended)
      trial_.bind_text(5, end);
    else
      trial_.bind_null(5);
    trial_.run();
    for (const auto& [name, value] : trial.params) {
      param_.bind(1, id);
      param_.bind_text(2, name);
      param_.bind(3, distributions_[name].stored(value));
      param_.bind_text(4, json_[name]);
      param_.run();
    }
    if (trial.state == TrialState::completed || trial.state == TrialState::stopped)
      for (std::size_t i = 0; i < found.size(); ++i) {
        value_.bind(1, id);
        value_.bind(2, static_cast<std::int64_t>(i));
        bind_value(value_, 3, found[i]);
        value_.run();
      }
    for (const auto& [name, value] : trial.metrics) {
      std::string json;
      append_json(json, value);
      attribute(id, name, json);
    }
    for (const auto& [name, value] : trial.attributes) {
      std::string json;
      append_json(json, value);
      attribute(id, name, json);
    }
    write_constraints(trial.trial);
    attribute(id, "hypertune:state", detail::format("\"{}\"", to_string(trial.state)));
    attribute(id, "hypertune:steps", std::to_string(trial.steps));
    if (trial.failure_count() > 0) attribute(id, "hypertune:failures", std::to_string(trial.failure_count()));
    if (trial.cause) {
      std::string json;
      append_json(json, trial.cause->text);
      attribute(id, "hypertune:cause", json);
    }
  }

  // In Optuna's form: above 0 is violated. Optuna counts a trial without constraints as infeasible, so none are written
  // if one is not known.
  void write_constraints(TrialId trial) {
    std::string json;
    for (const double excess : results_.excesses(trial)) {
      if (std::isnan(excess)) return;
      append_json(json += json.empty() ? "[" : ", ", std::clamp(excess, -1e308, 1e308));
    }
    if (json.empty()) return;
    constraints_.bind(1, trial + 1);
    constraints_.bind_text(2, json += "]");
    constraints_.run();
  }

  void attribute(std::int64_t trial, std::string_view key, std::string_view json) {
    attribute_.bind(1, trial);
    attribute_.bind_text(2, key);
    attribute_.bind_text(3, json);
    attribute_.run();
  }

  void write_reports() {
    const std::string metric = results_.experiment().objectives.front().metric;
    const auto trials = static_cast<TrialId>(results_.size());
    read_journal(results_.directory(), [&](const Record& record) {
      const auto* report = std::get_if<record::TrialReported>(&record.what);
      // a report from after the results were read may belong to an unknown trial
      if (report == nullptr || report->trial >= trials) return;
      const double* value = find_metric(report->metrics, metric);
      if (value == nullptr) return;
      report_.bind(1, report->trial + 1);
      report_.bind(2, static_cast<std::int64_t>(report->step));
      bind_value(report_, 3, *value);
      report_.run();
    });
  }

  static void bind_value(Statement& statement, int index, double value) {
    if (std::isfinite(value))
      statement.bind(index, value);
    else
      statement.bind_null(index);
    const char* infinite = value > 0 ? "INF_POS" : "INF_NEG";
    statement.bind_text(index + 1, std::isnan(value) ? "NAN" : std::isinf(value) ? infinite : "FINITE");
  }

  Database& db_;
  const Results& results_;
  std::unordered_map<std::string, Distribution> distributions_;
  std::unordered_map<std::string, std::string> json_;
  // Prepared at first use, because the tables must exist.
  struct Lazy {
    Database& db;
    const char* sql;
    std::optional<Statement> statement{};
    Statement& get() {
      if (!statement) statement.emplace(db, sql, "write");
      return *statement;
    }
    template <class T>
    void bind(int index, T value) {
      get().bind(index, value);
    }
    void bind_text(int index, std::string_view text) { get().bind_text(index, text); }
    void bind_null(int index) { get().bind_null(index); }
    void run() { get().run(); }
    operator Statement&() { return get(); }  // NOLINT: implicit on purpose
  };
  Lazy trial_{db_, "INSERT INTO trials VALUES (?1, ?2, 1, ?3, ?4, ?5)"};
  Lazy param_{
      db_, "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?1, ?2, ?3, ?4)"};
  Lazy value_{db_, "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?1, ?2, ?3, ?4)"};
  Lazy attribute_{db_, "INSERT OR REPLACE INTO trial_user_attributes (trial_id, key, value_json) VALUES (?1, ?2, ?3)"};
  Lazy constraints_{db_,
                    "INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (?1, 'constraints', ?2)"};
  Lazy report_{db_,
               "INSERT OR REPLACE INTO trial_intermediate_values "
               "(trial_id, step, intermediate_value, intermediate_value_type) VALUES (?1, ?2, ?3, ?4)"};
};

}  // namespace detail::optuna

/// Writes the experiment in `directory` (which may be running) as a new Optuna storage: `file` can then be opened by
/// `optuna-dashboard sqlite:///FILE` and `optuna.load_study(study_name=NAME, storage="sqlite:///FILE")` (Optuna 3.2 or
/// newer). The study is named `study`, by default like the experiment.
///
/// Completed trials, and those that a stop condition ended, are COMPLETE. Trials that the scheduler stopped are PRUNED.
/// Failed trials and completed ones without a value are FAIL. The values of a trial are those of its best report with
/// one objective, and of its last report with several, so that Optuna's best trial or front is that of Results. With
/// one objective, reports become intermediate values. The metrics of the last report become user attributes, and
/// constraints become Optuna's own. Distributions come from the recorded space, or from the recorded values if Optuna
/// has no such domain (normal, derived). Errors: `usage` (`file` exists already), `input` (no experiment there, or one
/// without a metric), `io`.
inline void export_optuna(const std::filesystem::path& directory, const std::filesystem::path& file,
                          std::string_view study = {}) {
  if (std::filesystem::exists(file))
    fail(Errc::usage, "'{}' exists already: remove it, or name another file", file.string());
  const Results results = Results::read(directory);
  if (results.experiment().objectives.empty())
    fail(Errc::input, "the experiment in '{}' has no metric yet: there is nothing to export", directory.string());
  const std::filesystem::path aside = file.string() + ".new";
  std::error_code none;
  std::filesystem::remove(aside, none);
  try {
    {
      detail::Database db(aside.string(), aside.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
      detail::optuna::Export(db, results, study);
    }
    std::filesystem::rename(aside, file);
  } catch (...) {
    std::filesystem::remove(aside, none);
    throw;
  }
}

}  // namespace hypertune::inline v0
