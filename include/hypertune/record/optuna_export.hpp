// Exports an experiment as an Optuna storage, for optuna-dashboard and other programs that read one.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/record/detail/optuna_distribution.hpp>
#include <hypertune/record/detail/sqlite.hpp>
#include <hypertune/record/results.hpp>

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
#include <unordered_set>
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
INSERT INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)sql";

/// UTC, as Optuna 5.0 (earlier versions: local time) has it, in SQLAlchemy's format.
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
    learn_places();
    learn_constraints();
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
      append_python(json, value);
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

  bool single() const { return results_.experiment().objectives.size() == 1; }

  // The trials that are the best one or on the front: complete for Optuna, whatever ended them.
  void learn_places() {
    if (!single()) {
      for (const TrialId trial : pareto_front(results_)) first_.insert(trial);
    } else if (const auto best = results_.find_best()) {
      first_.insert(best->trial);
      seen_best_ = results_.experiment().admits(*best);
    }
  }

  // The values that represent the trial, so that Optuna's best trial or front is ours: with one objective those of the
  // best report, with several those of the last one, which belong together (front.hpp). With one objective, an infinite
  // value is never the best here. In Optuna it may be: it is left out if it is not worse than that of our best trial.
  std::vector<double> values(const TrialResult& trial) const {
    const auto& objectives = results_.experiment().objectives;
    std::vector<double> out;
    for (const Objective& objective : objectives) {
      const auto best = single() ? results_.best_report(trial.trial, objective) : std::nullopt;
      const double* last = find_metric(trial.metrics, objective.metric);
      if (best)
        out.push_back(best->value);
      else if (last != nullptr && !std::isnan(*last) &&
               (!single() || (seen_best_ && loss_of(*last, objective.mode) > 0)))
        out.push_back(*last);
    }
    if (out.size() != objectives.size()) out.clear();
    return out;
  }

  // Whether the scheduler (or a changed space) stopped it. A trial that a stop condition ended has done its work and
  // may be the best; Optuna does not allow that for a pruned trial.
  bool cut(const TrialResult& trial) const {
    return !first_.contains(trial.trial) && (!trial.cause || record::gave_up(trial.cause->text));
  }

  bool is_complete(const TrialResult& trial) const {
    if (trial.state != TrialState::completed && (trial.state != TrialState::stopped || cut(trial))) return false;
    return !values(trial).empty();
  }

  void write(const TrialResult& trial) {
    const std::vector<double> found = values(trial);
    // Optuna has no completed trials without a value.
    const char* state = "WAITING";
    if (trial.state == TrialState::completed) state = "FAIL";
    if (trial.state == TrialState::stopped) state = "PRUNED";
    if (is_complete(trial)) state = "COMPLETE";
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
      append_python(json, value);
      attribute(id, name, json);
    }
    for (const auto& [name, value] : trial.attributes) {
      std::string json;
      append_python(json, value);
      attribute(id, name, json);
    }
    write_constraints(trial);
    attribute(id, "hypertune:state", detail::format("\"{}\"", to_string(trial.state)));
    attribute(id, "hypertune:steps", std::to_string(trial.steps));
    if (trial.failure_count() > 0) attribute(id, "hypertune:failures", std::to_string(trial.failure_count()));
    if (trial.cause) {
      std::string json;
      append_json(json, trial.cause->text);
      attribute(id, "hypertune:cause", json);
    }
  }

  // By how much a trial breaks each constraint in the report that represents it.
  void learn_constraints() {
    const auto& bounds = results_.experiment().constraints;
    if (bounds.empty()) return;
    if (single()) {
      learn_excesses_of_best();
    } else {
      for (const TrialResult& trial : results_.trials()) excesses_[trial.trial] = results_.excesses(trial.trial);
    }
    for (std::size_t i = 0; i < bounds.size(); ++i) worst_.push_back(1);
    for (const TrialResult& trial : results_.trials()) {
      const auto& excesses = excesses_[trial.trial];
      constrained_ = constrained_ || (is_complete(trial) && is_known(excesses));
      for (std::size_t i = 0; i < excesses.size(); ++i)
        if (std::isfinite(excesses[i])) worst_[i] = std::max(worst_[i], finite(excesses[i]));
    }
  }

  // As Results finds out which report is the best.
  void learn_excesses_of_best() {
    const ExperimentInfo& info = results_.experiment();
    const Objective& objective = info.objectives.front();
    const auto trials = static_cast<TrialId>(results_.size());
    std::unordered_map<TrialId, std::vector<double>> now;
    std::unordered_map<TrialId, std::optional<BestReport>> best;
    for (const TrialResult& trial : results_.trials()) best[trial.trial] = results_.best_report(trial.trial, objective);
    const auto rank = [&](const std::vector<double>& excesses) { return violation(excesses, info.constraints); };
    read_journal(results_.directory(), [&](const Record& record) {
      const auto* report = std::get_if<record::TrialReported>(&record.what);
      if (report == nullptr || report->trial >= trials) return;
      auto& known = now[report->trial];
      auto& chosen = excesses_[report->trial];
      // What becomes known later holds for earlier reports too.
      const bool learnt = update_excesses(known, info.constraints, report->metrics);
      if (learnt && !chosen.empty() && std::isinf(rank(chosen))) chosen = known;
      const double* value = find_metric(report->metrics, objective.metric);
      const auto& at = best[report->trial];
      if (at && value != nullptr && report->step == at->step && *value == at->value &&
          (chosen.empty() || rank(known) < rank(chosen)))
        chosen = known;
    });
  }

  bool is_known(const std::vector<double>& excesses) const {
    return excesses.size() == results_.experiment().constraints.size() &&
           std::none_of(excesses.begin(), excesses.end(), [](double excess) { return std::isnan(excess); });
  }
  // Optuna's samplers compute means and squares of them.
  static double finite(double excess) { return std::clamp(excess, -1e100, 1e100); }

  // In Optuna's form: above 0 is violated. A trial without any counts as one that violates them in 4.9, and as one that
  // meets them in 5.0; so one that is not known, which counts as violated here, is written as much violated as the
  // worst that is known. If no trial that may be the best has all of them, they decide nothing, and none are written.
  void write_constraints(const TrialResult& trial) {
    if (!constrained_) return;
    const auto& bounds = results_.experiment().constraints;
    auto excesses = excesses_[trial.trial];
    if (!is_known(excesses) && !is_complete(trial) && trial.state != TrialState::stopped) return;
    excesses.resize(bounds.size(), unknown_excess);
    std::string json, unknown;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const bool known = !std::isnan(excesses[i]);
      append_python(json += json.empty() ? "[" : ", ", known ? finite(excesses[i]) : worst_[i]);
      if (!known) append_json(unknown += unknown.empty() ? "[" : ", ", bounds[i].metric);
    }
    constraints_.bind(1, trial.trial + 1);
    constraints_.bind_text(2, json += "]");
    constraints_.run();
    if (!unknown.empty()) attribute(trial.trial + 1, "hypertune:unknown_constraints", unknown += "]");
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
  std::unordered_set<TrialId> first_;  // the best trial, or those on the front
  bool seen_best_ = false;             // our best trial is one that Optuna can have, too
  std::unordered_map<TrialId, std::vector<double>> excesses_;
  std::vector<double> worst_;  // of the excesses, by constraint
  bool constrained_ = false;
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
/// Completed trials, those that a stop condition ended, and the best trial or those on the front are COMPLETE. Other
/// trials that the scheduler stopped are PRUNED. Failed trials and completed ones without a value are FAIL. The values
/// of a trial are those of its best report with one objective, and of its last report with several, so that Optuna's
/// best trial or front is that of Results (compared with Optuna 4.9 and 5.0). Optuna has none if no trial meets the
/// constraints, nor one that still runs. With one objective, reports become intermediate values; an
/// infinite value is left out if it would be Optuna's best. The metrics of the last report become user attributes, and
/// constraints become Optuna's own: a constraint that is not known is written as violated, and the user attribute
/// `hypertune:unknown_constraints` lists its metric. Distributions come from the recorded space, or from the recorded
/// values if Optuna has no such domain (normal, derived) or could not store them (whole numbers above 2^53, numbers that
/// are not finite: they become choices). Errors: `usage` (`file` exists already), `input` (no experiment there, or one
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
