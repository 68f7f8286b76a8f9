// Optuna's two storages: an SQLite database, and a log of operations.
#include "study.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/detail/sqlite.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

namespace hypertune::inline v0::detail::import {

namespace {

constexpr const char* pruned_cause = "pruned by Optuna";

bool has_offset(std::string_view text) { return text.ends_with("+00:00"); }

// "2024-05-01 12:00:00.000001", local time unless `utc`; or with a T and an offset, which is always +00:00.
std::optional<Seconds> time_of(std::string_view text, bool utc = false) {
  std::tm parts{};
  double seconds = 0;
  char between = ' ';
  if (std::sscanf(std::string(text.substr(0, 40)).c_str(), "%4d-%2d-%2d%c%2d:%2d:%lf", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &between, &parts.tm_hour, &parts.tm_min, &seconds) != 7)
    return std::nullopt;
  parts.tm_year -= 1900;
  --parts.tm_mon;
  parts.tm_isdst = -1;
  utc = utc || has_offset(text);
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

// The objectives of a study, with its names of the metrics if it has them.
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

// The metrics that the study's constraints become, by their names in Optuna 5.0, which numbers those of a list.
std::map<std::string, std::string> constraint_metrics(const OptunaStudy& study,
                                                      const std::vector<Objective>& objectives) {
  std::map<std::string, std::string> metrics;
  for (const OptunaTrial& trial : study.trials) {
    for (std::size_t i = 0; i < trial.listed.size(); ++i) metrics[fmt::to_string(i)];
    for (const auto& [name, value] : trial.named) metrics[name];
  }
  for (auto& [name, metric] : metrics) {
    metric = "constraint_" + name;
    while (std::ranges::any_of(objectives, [&](const Objective& each) { return each.metric == metric; })) metric += '_';
  }
  return metrics;
}

Metrics constraints_of(const OptunaTrial& trial, const std::map<std::string, std::string>& metrics, bool none_is_met) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < trial.listed.size(); ++i)
    if (trial.listed[i]) values[fmt::to_string(i)] = *trial.listed[i];
  for (const auto& [name, value] : trial.named) values[name] = value;
  Metrics out;
  for (const auto& [name, metric] : metrics) {
    const auto found = values.find(name);
    if (found != values.end())
      out.emplace_back(metric, found->second);
    else if (none_is_met && trial.state == "COMPLETE")
      out.emplace_back(metric, 0.0);
  }
  return out;
}

ForeignTrial finished(OptunaTrial optuna, const std::vector<Objective>& objectives, Metrics constraints) {
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
  Metrics last;
  if (trial.state == TrialState::completed && optuna.values.size() == objectives.size())
    for (std::size_t i = 0; i < objectives.size(); ++i) last.emplace_back(objectives[i].metric, optuna.values[i]);
  std::ranges::move(constraints, std::back_inserter(last));
  if (last.empty()) return trial;
  if (trial.reports.empty()) trial.reports.emplace_back();
  std::ranges::move(last, std::back_inserter(trial.reports.back().metrics));
  return trial;
}

}  // namespace

void OptunaTrial::system_attribute(std::string_view name, const boost::json::value& value) {
  constexpr std::string_view key = "constraints";
  if (!name.starts_with(key)) return;
  name.remove_prefix(key.size());
  if (name.starts_with(':')) {
    if (const auto real = number(value)) named[std::string(name.substr(1))] = *real;
  } else if (name.empty()) {
    listed.clear();  // null if the user's function failed
    if (value.is_array())
      for (const auto& each : value.get_array()) listed.push_back(number(each));
  }
}

ForeignStudy finished(OptunaStudy study, const ImportOptions& options) {
  ForeignStudy out;
  out.name = study.name;
  out.what = fmt::format("study '{}' of Optuna", study.name);
  out.searcher = "Optuna";
  out.name_attribute = "optuna_number";
  out.numbered = true;
  out.objectives = objectives_of(study.modes, study.metrics, options);
  out.attributes = std::move(study.attributes);
  out.space = std::move(study.space);
  const auto metrics = constraint_metrics(study, out.objectives);
  for (const auto& [name, metric] : metrics) out.constraints.push_back({metric, Mode::minimize, 0});
  // Before 5.0, a trial without recorded constraints counted as one that violates them; since then, as one that meets
  // them.
  for (OptunaTrial& trial : study.trials) {
    Metrics constraints = constraints_of(trial, metrics, study.since_5);
    out.trials.push_back(finished(std::move(trial), out.objectives, std::move(constraints)));
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
  OptunaStudy out;
  out.name = names[chosen];
  out.since_5 = query_integer(db, "SELECT max(CAST(library_version AS INTEGER)) FROM version_info") >= 5;
  const bool utc = out.since_5;
  rows("SELECT direction FROM study_directions WHERE study_id = ?1 ORDER BY objective",
       [&](Statement& row) { out.modes.push_back(row.bytes(0) == "MAXIMIZE" ? Mode::maximize : Mode::minimize); });
  rows("SELECT value_json FROM study_system_attributes WHERE study_id = ?1 AND key = 'study:metric_names'",
       [&](Statement& row) { out.metrics = names_in(parse_json(row.bytes(0), file.string())); });
  rows("SELECT key, value_json FROM study_user_attributes WHERE study_id = ?1 ORDER BY 1",
       [&](Statement& row) { note(out.attributes, text(row, 0), parse_json(row.bytes(1), file.string())); });
  std::map<std::int64_t, OptunaTrial> trials;
  rows("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE study_id = ?1",
       [&](Statement& row) {
         OptunaTrial& trial = trials[row.integer(0)];
         trial.trial.name = text(row, 1);
         trial.state = text(row, 2);
         trial.trial.started = time_of(row.bytes(3), utc);
         trial.trial.ended = time_of(row.bytes(4), utc);
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
  rows(
      "SELECT a.trial_id, a.key, a.value_json FROM trial_system_attributes a JOIN trials t USING (trial_id) WHERE "
      "t.study_id = ?1 AND a.key LIKE 'constraints%'",
      [&](Statement& row) {
        OptunaTrial& trial = trials[row.integer(0)];
        trial.system_attribute(text(row, 1), parse_json(row.bytes(2), file.string()));
        out.since_5 = out.since_5 || !trial.named.empty();
      });
  for (auto& [id, trial] : trials) out.trials.push_back(std::move(trial));
  return finished(std::move(out), options);
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
  trial_system_attribute,
};

/// Replays the log as Optuna does: studies and trials are numbered in the order of their creation. Each operation is
/// written before it is decided whether it is allowed, so that refused ones stay in the file. They must have no effect
/// here either: creating a study of a name that exists, anything for a study that was deleted, a change of a trial that
/// has ended, starting one that runs, a parameter with other choices than before.
class JournalReplay {
 public:
  explicit JournalReplay(std::string where) : where_(std::move(where)) {}

  void apply(const boost::json::object& line) {
    const auto operation = static_cast<Operation>(integer(line, "op_code"));
    switch (operation) {
      case Operation::create_study: return create_study(line);
      case Operation::create_trial: return create_trial(line);
      case Operation::delete_study:
        if (Study* study = study_of(line)) study->deleted = true;
        return;
      case Operation::study_user_attribute:
        if (Study* study = study_of(line))
          each(line, "user_attr",
               [&](const auto& name, const auto& value) { note(study->content.attributes, name, value); });
        return;
      case Operation::study_system_attribute:
        if (Study* study = study_of(line))
          each(line, "system_attr", [&](const auto& name, const auto& value) {
            if (name == "study:metric_names") study->content.metrics = names_in(value);
          });
        return;
      case Operation::trial_parameter:
      case Operation::trial_state:
      case Operation::trial_intermediate:
      case Operation::trial_user_attribute:
      case Operation::trial_system_attribute:
        if (Trial* trial = trial_of(line)) change(operation, *trial, line);
        return;
    }
  }

  /// The studies that were not deleted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Study& study : studies_)
      if (!study.deleted) names.push_back(study.content.name);
    return names;
  }
  /// One of them.
  OptunaStudy take(std::size_t which) {
    for (Study& study : studies_) {
      if (study.deleted || which-- > 0) continue;
      for (const std::size_t i : study.trials) {
        study.content.since_5 = study.content.since_5 || !trials_[i].content.named.empty();
        study.content.trials.push_back(std::move(trials_[i].content));
      }
      return std::move(study.content);
    }
    fail(Errc::usage, "'{}' has no such study", where_);
  }

 private:
  struct Study {
    OptunaStudy content;
    std::vector<std::size_t> trials;
    // The first trial with the parameter, and its distribution there: the others must be compatible.
    std::map<std::string, std::pair<std::size_t, const Distribution*>> first;
    bool deleted = false;
  };
  struct Trial {
    OptunaTrial content;
    std::size_t study = 0, index = 0;
  };

  std::int64_t integer(const boost::json::object& line, const char* key) const {
    const auto* found = line.if_contains(key);
    if (found == nullptr || !found->is_int64()) fail(Errc::input, "{}: an operation without '{}'", where_, key);
    return found->get_int64();
  }
  static std::string text(const boost::json::object& line, std::string_view key) {
    return std::string(text_in(line, key));
  }
  template <class Take>
  static void each(const boost::json::object& line, const char* key, const Take& take) {
    if (const auto* found = object_in(line, key))
      for (const auto& [name, value] : *found) take(std::string(name), value);
  }
  Study* study_of(const boost::json::object& line) {
    const auto id = integer(line, "study_id");
    if (id < 0 || id >= std::ssize(studies_) || studies_[static_cast<std::size_t>(id)].deleted) return nullptr;
    return &studies_[static_cast<std::size_t>(id)];
  }
  Trial* trial_of(const boost::json::object& line) {
    const auto id = integer(line, "trial_id");
    if (id < 0 || id >= std::ssize(trials_) || trials_[static_cast<std::size_t>(id)].content.is_finished())
      return nullptr;
    return &trials_[static_cast<std::size_t>(id)];
  }

  void create_study(const boost::json::object& line) {
    std::string name = text(line, "study_name");
    for (const Study& study : studies_)
      if (!study.deleted && study.content.name == name) return;
    Study& study = studies_.emplace_back();
    study.content.name = std::move(name);
    if (const auto* directions = array_in(line, "directions"))
      for (const auto& direction : *directions)
        study.content.modes.push_back(direction == 2 ? Mode::maximize : Mode::minimize);
  }

  void create_trial(const boost::json::object& line) {
    Study* study = study_of(line);
    if (study == nullptr) return;
    Trial& made = trials_.emplace_back();
    made.study = static_cast<std::size_t>(study - studies_.data());
    made.index = study->trials.size();
    made.content.trial.name = fmt::to_string(made.index);
    study->trials.push_back(trials_.size() - 1);
    made.content.state = "RUNNING";
    const auto* distributions = object_in(line, "distributions");
    each(line, "params", [&](const std::string& name, const boost::json::value& value) {
      if (distributions != nullptr) parameter(made, name, &value, text(*distributions, name), false);
    });
    each(line, "user_attrs",
         [&](const auto& name, const auto& value) { note(made.content.trial.attributes, name, value); });
    each(line, "system_attrs",
         [&](const auto& name, const auto& value) { made.content.system_attribute(name, value); });
    each(line, "intermediate_values", [&](const std::string& step, const boost::json::value& value) {
      if (const auto real = number(value)) made.content.intermediate[std::atoll(step.c_str())] = *real;
    });
    state(made, line);
  }

  void change(Operation operation, Trial& trial, const boost::json::object& line) {
    if (operation == Operation::trial_parameter) {
      parameter(trial, text(line, "param_name"), line.if_contains("param_value_internal"), text(line, "distribution"),
                true);
    } else if (operation == Operation::trial_state) {
      if (!(line.contains("state") && line.at("state") == 0 && trial.content.state == "RUNNING")) state(trial, line);
    } else if (operation == Operation::trial_intermediate) {
      const auto* value = line.if_contains("intermediate_value");
      if (const auto real = value != nullptr ? number(*value) : std::nullopt)
        trial.content.intermediate[integer(line, "step")] = *real;
    } else if (operation == Operation::trial_user_attribute) {
      each(line, "user_attr",
           [&](const auto& name, const auto& value) { note(trial.content.trial.attributes, name, value); });
    } else {
      each(line, "system_attr",
           [&](const auto& name, const auto& value) { trial.content.system_attribute(name, value); });
    }
  }

  void parameter(Trial& trial, const std::string& name, const boost::json::value* value,
                 const std::string& distribution, bool checked) {
    const auto real = value == nullptr ? std::nullopt : number(*value);
    if (!real) fail(Errc::input, "{}: the parameter '{}' has no number", where_, name);
    const auto [found, added] = distributions_.try_emplace(distribution);
    if (added) found->second = Distribution(distribution, where_);
    Study& study = studies_[trial.study];
    const auto first = study.first.find(name);
    if (checked && first != study.first.end() && !first->second.second->compatible(found->second)) return;
    if (first == study.first.end() || first->second.first >= trial.index)
      study.first[name] = {trial.index, &found->second};
    trial.content.trial.params.set(name, found->second.value(*real));
    study.content.space[name] = found->second.describe();
  }

  void state(Trial& trial, const boost::json::object& line) {
    static constexpr const char* names[] = {"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
    OptunaTrial& content = trial.content;
    if (const auto* state = line.if_contains("state"); state != nullptr && state->is_int64())
      if (const auto number = state->get_int64(); number >= 0 && number < std::ssize(names))
        content.state = names[number];
    if (const auto* values = array_in(line, "values")) {
      content.values.clear();
      for (const auto& value : *values)
        if (const auto real = number(value)) content.values.push_back(*real);
    } else if (const auto* value = line.if_contains("value")) {
      if (const auto real = number(*value)) content.values = {*real};
    }
    const std::string begin = text(line, "datetime_start"), end = text(line, "datetime_complete");
    if (const auto time = time_of(begin)) content.trial.started = time;
    if (const auto time = time_of(end)) content.trial.ended = time;
    auto& since_5 = studies_[trial.study].content.since_5;
    since_5 = since_5 || has_offset(begin);  // earlier versions wrote local times
  }

  std::string where_;
  std::vector<Study> studies_;
  std::vector<Trial> trials_;
  std::map<std::string, Distribution> distributions_;
};

}  // namespace

ForeignStudy read_optuna_journal(const std::filesystem::path& file, const ImportOptions& options) {
  std::ifstream in(file);
  JournalReplay replay(file.string());
  std::string line;
  for (std::size_t at = 1; std::getline(in, line); ++at) {
    if (in.eof()) break;  // without an end: still being written, and not there for Optuna either
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", file.string(), at);
    const auto value = parse_json(line, where);
    if (!value.is_object()) fail(Errc::input, "{}: this is no operation of Optuna's JournalStorage", where);
    replay.apply(value.get_object());
  }
  return finished(replay.take(chosen_study(replay.names(), options, file.string())), options);
}

}  // namespace hypertune::inline v0::detail::import
