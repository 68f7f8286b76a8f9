// Optuna's two storages: an SQLite database, and a log of operations.
#include "study.hpp"

#include <hypertune/error.hpp>
#include <hypertune/record/sqlite.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <utility>

namespace hypertune::inline v0::detail::import {

namespace {

constexpr const char* pruned_cause = "pruned by Optuna";

// "2024-05-01 12:00:00.000001", local time; or with a T and an offset, which is always +00:00.
std::optional<Seconds> time_of(std::string_view text) {
  std::tm parts{};
  double seconds = 0;
  char between = ' ';
  if (std::sscanf(std::string(text.substr(0, 40)).c_str(), "%4d-%2d-%2d%c%2d:%2d:%lf", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &between, &parts.tm_hour, &parts.tm_min, &seconds) != 7)
    return std::nullopt;
  parts.tm_year -= 1900;
  --parts.tm_mon;
  parts.tm_isdst = -1;
  const bool utc = text.ends_with("+00:00");
  const std::time_t whole = utc ? ::timegm(&parts) : std::mktime(&parts);
  if (whole == -1 || !std::isfinite(seconds)) return std::nullopt;
  return static_cast<double>(whole) + seconds;
}

double value_of_type(double value, std::string_view type) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (type == "INF_POS") return infinity;
  if (type == "INF_NEG") return -infinity;
  return type == "NAN" ? std::numeric_limits<double>::quiet_NaN() : value;
}

std::vector<std::string> names_in(const boost::json::value& list) {
  std::vector<std::string> names;
  if (list.is_array())
    for (const auto& name : list.get_array())
      if (name.is_string()) names.emplace_back(name.get_string());
  return names;
}

void note(Attributes& attributes, const std::string& name, const boost::json::value& value) {
  constexpr std::size_t longest = 128;
  if (!name.empty() && name.size() <= longest) attributes.set(name, plain_value(value));
}

}  // namespace

ForeignTrial finished(OptunaTrial optuna, const std::vector<Objective>& objectives) {
  ForeignTrial trial = std::move(optuna.trial);
  if (optuna.state == "COMPLETE") trial.state = TrialState::completed;
  if (optuna.state == "PRUNED") trial.state = TrialState::stopped, trial.cause = pruned_cause;
  if (optuna.state == "FAIL") trial.state = TrialState::failed, trial.cause = "failed in Optuna";
  // Intermediate values are not results: Optuna judges a trial by its final values only. If they had the name of the
  // objective, one good intermediate value, or a pruned trial, could become the best.
  if (objectives.size() == 1) {
    std::string between = "intermediate_value";
    if (objectives.front().metric == between) between += "s";
    for (const auto& [step, value] : optuna.intermediate)
      if (step >= 0 && step < std::numeric_limits<int>::max() - 1)
        trial.reports.push_back({{}, static_cast<int>(step), {{between, value}}});
  }
  if (trial.state != TrialState::completed || optuna.values.size() != objectives.size()) return trial;
  if (trial.reports.empty()) trial.reports.emplace_back();
  for (std::size_t i = 0; i < objectives.size(); ++i)
    trial.reports.back().metrics.emplace_back(objectives[i].metric, optuna.values[i]);
  return trial;
}

std::vector<Objective> objectives_of(const std::vector<Mode>& modes, const std::vector<std::string>& names,
                                     const ImportOptions& options) {
  std::vector<Objective> out;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    std::string name = modes.size() == 1 ? "value" : fmt::format("value_{}", i);
    if (i < names.size()) name = names[i];
    if (modes.size() == 1 && !options.metric.empty()) name = options.metric;
    out.push_back({std::move(name), modes[i]});
  }
  return out;
}

std::size_t chosen_study(const std::vector<std::string>& names, const ImportOptions& options,
                         const std::string& source) {
  if (names.empty()) fail(Errc::usage, "'{}' has no study", source);
  if (options.study.empty() && names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), options.study);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  fail(Errc::usage, "'{}' has {}: name one of its studies with --study: {}", source,
       options.study.empty() ? "several studies" : fmt::format("no study '{}'", options.study), fmt::join(names, ", "));
}

ForeignStudy read_optuna_sqlite(const std::filesystem::path& file, const ImportOptions& options) {
  Database db(file.string(), file.string(), SQLITE_OPEN_READONLY);
  if (query_integer(db,
                    "SELECT count(*) FROM pragma_table_info('trial_intermediate_values') "
                    "WHERE name = 'intermediate_value_type'") == 0 ||
      query_integer(db, "SELECT count(*) FROM pragma_table_info('trial_values') WHERE name = 'value_type'") == 0)
    fail(Errc::input, "'{}' is no Optuna storage, or one of before 3.0: optuna storage upgrade --storage sqlite:///{}",
         file.string(), file.string());
  const auto text = [](Statement& row, int column) { return std::string(row.bytes(column)); };
  std::vector<std::string> names;
  std::vector<std::int64_t> ids;
  for (Statement row(db, "SELECT study_id, study_name FROM studies ORDER BY study_id", "read"); row.step();) {
    ids.push_back(row.integer(0));
    names.push_back(text(row, 1));
  }
  const std::size_t chosen = chosen_study(names, options, file.string());
  const std::int64_t study = ids[chosen];
  const auto rows = [&](const char* sql, const auto& take) {
    Statement row(db, sql, "read");
    row.bind(1, study);
    while (row.step()) take(row);
  };
  ForeignStudy out;
  out.name = names[chosen];
  out.what = fmt::format("study '{}' of Optuna", out.name);
  out.searcher = "Optuna";
  out.name_attribute = "optuna_number";
  std::vector<Mode> modes;
  std::vector<std::string> metrics;
  rows("SELECT direction FROM study_directions WHERE study_id = ?1 ORDER BY objective",
       [&](Statement& row) { modes.push_back(row.bytes(0) == "MAXIMIZE" ? Mode::maximize : Mode::minimize); });
  rows("SELECT value_json FROM study_system_attributes WHERE study_id = ?1 AND key = 'study:metric_names'",
       [&](Statement& row) { metrics = names_in(parse_json(row.bytes(0), file.string())); });
  rows("SELECT key, value_json FROM study_user_attributes WHERE study_id = ?1 ORDER BY 1",
       [&](Statement& row) { note(out.attributes, text(row, 0), parse_json(row.bytes(1), file.string())); });
  out.objectives = objectives_of(modes, metrics, options);
  std::map<std::int64_t, OptunaTrial> trials;
  rows("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE study_id = ?1",
       [&](Statement& row) {
         OptunaTrial& trial = trials[row.integer(0)];
         trial.trial.name = text(row, 1);
         trial.state = text(row, 2);
         trial.trial.started = time_of(row.bytes(3));
         trial.trial.ended = time_of(row.bytes(4));
       });
  std::map<std::string, Distribution> distributions;  // by their JSON text
  rows(
      "SELECT p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p JOIN trials t USING "
      "(trial_id) WHERE t.study_id = ?1 ORDER BY p.param_id",
      [&](Statement& row) {
        const std::string json = text(row, 3);
        const auto [found, added] = distributions.try_emplace(json);
        if (added) found->second = Distribution(json, file.string());
        trials[row.integer(0)].trial.params.set(text(row, 1), found->second.value(row.real(2)));
        out.space[text(row, 1)] = found->second.describe();
      });
  rows(
      "SELECT v.trial_id, v.value, v.value_type FROM trial_values v JOIN trials t USING (trial_id) WHERE "
      "t.study_id = ?1 ORDER BY v.objective",
      [&](Statement& row) { trials[row.integer(0)].values.push_back(value_of_type(row.real(1), row.bytes(2))); });
  rows(
      "SELECT v.trial_id, v.step, v.intermediate_value, v.intermediate_value_type FROM trial_intermediate_values v "
      "JOIN trials t USING (trial_id) WHERE t.study_id = ?1",
      [&](Statement& row) {
        trials[row.integer(0)].intermediate[row.integer(1)] = value_of_type(row.real(2), row.bytes(3));
      });
  rows(
      "SELECT a.trial_id, a.key, a.value_json FROM trial_user_attributes a JOIN trials t USING (trial_id) WHERE "
      "t.study_id = ?1 ORDER BY a.key",
      [&](Statement& row) {
        note(trials[row.integer(0)].trial.attributes, text(row, 1), parse_json(row.bytes(2), file.string()));
      });
  for (auto& [id, trial] : trials) out.trials.push_back(finished(std::move(trial), out.objectives));
  return out;
}

namespace {

// Operations of JournalStorage; the values are its op codes.
enum class Operation : std::int64_t {
  create_study,
  delete_study,
  study_user_attribute,
  study_system_attribute,
  create_trial,
  trial_parameter,
  trial_state,
  trial_intermediate,
  trial_user_attribute,
};

struct JournalStudy {
  std::string name;
  std::vector<Mode> modes;
  std::vector<std::string> metrics;
  Attributes attributes;
  std::map<std::string, std::string> space;
  std::vector<std::size_t> trials;
  bool deleted = false;
};

/// Replays the log as Optuna does: studies and trials are numbered in the order of their creation.
class JournalReplay {
 public:
  explicit JournalReplay(std::string where) : where_(std::move(where)) {}

  void apply(const boost::json::object& line) {
    switch (static_cast<Operation>(integer(line, "op_code"))) {
      case Operation::create_study: {
        JournalStudy& study = studies.emplace_back();
        study.name = text(line, "study_name");
        if (const auto* directions = line.if_contains("directions"); directions != nullptr && directions->is_array())
          for (const auto& direction : directions->get_array())
            study.modes.push_back(direction == 2 ? Mode::maximize : Mode::minimize);
        return;
      }
      case Operation::delete_study: study_of(line).deleted = true; return;
      case Operation::study_user_attribute:
        return each(line, "user_attr",
                    [&](const std::string& name, const auto& value) { note(study_of(line).attributes, name, value); });
      case Operation::study_system_attribute:
        return each(line, "system_attr", [&](const std::string& name, const auto& value) {
          if (name == "study:metric_names") study_of(line).metrics = names_in(value);
        });
      case Operation::create_trial: return create(line);
      case Operation::trial_parameter: {
        const auto* value = line.if_contains("param_value_internal");
        parameter(trial_of(line), text(line, "param_name"), value, text(line, "distribution"));
        return;
      }
      case Operation::trial_state: return state(trial_of(line).first, line);
      case Operation::trial_intermediate: {
        const auto* value = line.if_contains("intermediate_value");
        if (const auto real = value != nullptr ? number(*value) : std::nullopt)
          trial_of(line).first.intermediate[integer(line, "step")] = *real;
        return;
      }
      case Operation::trial_user_attribute:
        return each(line, "user_attr", [&](const std::string& name, const auto& value) {
          note(trial_of(line).first.trial.attributes, name, value);
        });
    }
  }

  std::vector<JournalStudy> studies;
  std::vector<std::pair<OptunaTrial, std::size_t>> trials;  // with the index of their study

 private:
  std::int64_t integer(const boost::json::object& line, const char* key) const {
    const auto* found = line.if_contains(key);
    if (found == nullptr || !found->is_int64()) fail(Errc::input, "{}: an operation without '{}'", where_, key);
    return found->get_int64();
  }
  std::string text(const boost::json::object& line, const char* key) const {
    const auto* found = line.if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
  }
  template <class Take>
  static void each(const boost::json::object& line, const char* key, const Take& take) {
    if (const auto* found = line.if_contains(key); found != nullptr && found->is_object())
      for (const auto& [name, value] : found->get_object()) take(std::string(name), value);
  }
  JournalStudy& study_of(const boost::json::object& line) {
    const auto id = integer(line, "study_id");
    if (id < 0 || id >= std::ssize(studies)) fail(Errc::input, "{}: there is no study {}", where_, id);
    return studies[static_cast<std::size_t>(id)];
  }
  std::pair<OptunaTrial, std::size_t>& trial_of(const boost::json::object& line) {
    const auto id = integer(line, "trial_id");
    if (id < 0 || id >= std::ssize(trials)) fail(Errc::input, "{}: there is no trial {}", where_, id);
    return trials[static_cast<std::size_t>(id)];
  }
  void create(const boost::json::object& line) {
    JournalStudy& study = study_of(line);
    auto& made = trials.emplace_back();
    made.second = static_cast<std::size_t>(integer(line, "study_id"));
    made.first.trial.name = fmt::to_string(study.trials.size());
    study.trials.push_back(trials.size() - 1);
    made.first.state = "RUNNING";
    const auto* distributions = line.if_contains("distributions");
    each(line, "params", [&](const std::string& name, const boost::json::value& value) {
      if (distributions != nullptr && distributions->is_object())
        parameter(made, name, &value, text(distributions->get_object(), name.c_str()));
    });
    each(line, "user_attrs",
         [&](const std::string& name, const auto& value) { note(made.first.trial.attributes, name, value); });
    each(line, "intermediate_values", [&](const std::string& step, const boost::json::value& value) {
      if (const auto real = number(value)) made.first.intermediate[std::atoll(step.c_str())] = *real;
    });
    state(made.first, line);
  }
  void parameter(std::pair<OptunaTrial, std::size_t>& trial, const std::string& name, const boost::json::value* value,
                 const std::string& distribution) {
    const auto real = value == nullptr ? std::nullopt : number(*value);
    if (!real) fail(Errc::input, "{}: the parameter '{}' has no number", where_, name);
    const auto [found, added] = distributions_.try_emplace(distribution);
    if (added) found->second = Distribution(distribution, where_);
    trial.first.trial.params.set(name, found->second.value(*real));
    studies[trial.second].space[name] = found->second.describe();
  }
  void state(OptunaTrial& trial, const boost::json::object& line) {
    static constexpr const char* names[] = {"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
    if (const auto* state = line.if_contains("state"); state != nullptr && state->is_int64())
      if (const auto number = state->get_int64(); number >= 0 && number < std::ssize(names))
        trial.state = names[number];
    if (const auto* values = line.if_contains("values"); values != nullptr && values->is_array()) {
      trial.values.clear();
      for (const auto& value : values->get_array())
        if (const auto real = number(value)) trial.values.push_back(*real);
    } else if (const auto* value = line.if_contains("value")) {
      if (const auto real = number(*value)) trial.values = {*real};
    }
    if (const auto time = time_of(text(line, "datetime_start"))) trial.trial.started = time;
    if (const auto time = time_of(text(line, "datetime_complete"))) trial.trial.ended = time;
  }

  std::string where_;
  std::map<std::string, Distribution> distributions_;
};

}  // namespace

ForeignStudy read_optuna_journal(const std::filesystem::path& file, const ImportOptions& options) {
  std::ifstream in(file);
  JournalReplay replay(file.string());
  std::string line;
  for (std::size_t at = 1; std::getline(in, line); ++at) {
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", file.string(), at);
    if (in.eof() && line.back() != '}') break;  // an incomplete last line, still being written
    const auto value = parse_json(line, where);
    if (!value.is_object()) fail(Errc::input, "{}: this is no operation of Optuna's JournalStorage", where);
    replay.apply(value.get_object());
  }
  std::vector<std::string> names;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < replay.studies.size(); ++i)
    if (!replay.studies[i].deleted) names.push_back(replay.studies[i].name), which.push_back(i);
  JournalStudy& study = replay.studies[which[chosen_study(names, options, file.string())]];
  ForeignStudy out;
  out.name = study.name;
  out.what = fmt::format("study '{}' of Optuna", study.name);
  out.searcher = "Optuna";
  out.name_attribute = "optuna_number";
  out.objectives = objectives_of(study.modes, study.metrics, options);
  out.space = std::move(study.space);
  out.attributes = std::move(study.attributes);
  for (const std::size_t i : study.trials)
    out.trials.push_back(finished(std::move(replay.trials[i].first), out.objectives));
  return out;
}

}  // namespace hypertune::inline v0::detail::import
