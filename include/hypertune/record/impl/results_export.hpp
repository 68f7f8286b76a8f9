// Results as CSV and as JSON. Included by impl/results.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/journal_reader.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <span>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

std::string schedule_json(std::span<const ScheduleEntry> schedule) {
  std::string out = "[";
  for (const auto& entry : schedule) {
    out += detail::format("{}\n  {{\"from_step\": {}, \"trial\": {}, \"params\": ", out.size() > 1 ? "," : "",
                          entry.from_step, entry.trial);
    detail::append_json_object(out, entry.params);
    out += '}';
  }
  return out += "\n]\n";
}

namespace detail {

/// Appends one field, quoted if RFC 4180 requires it.
inline void append_csv(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

inline void append_trial_json(std::string& out, const TrialResult& trial) {
  out += detail::format(R"({{"trial": {}, "state": "{}", "params": )", trial.trial, to_string(trial.state));
  append_json_object(out, trial.params);
  out += detail::format(R"(, "steps": {}, "metrics": )", trial.steps);
  append_json_object(out, trial.metrics);
  out += R"(, "best": )";
  if (trial.best) {
    out += detail::format(R"({{"step": {}, )", trial.best->step);
    append_json(out, metric_key(trial.best->metric));
    out += ": ";
    append_json(out, trial.best->value);
    out += '}';
  } else {
    out += "null";
  }
  if (trial.feasible) out += detail::format(R"(, "feasible": {})", *trial.feasible);
  if (!trial.attributes.empty()) append_json_object(out += R"(, "attributes": )", trial.attributes);
  out += detail::format(R"(, "failures": {}, "cause": )", trial.failure_count());
  if (trial.cause)
    append_json(out, trial.cause->text);
  else
    out += "null";
}

inline void append_report_json(std::string& out, const record::TrialReported& report) {
  out += detail::format(R"({{"step": {})", report.step);
  for (const auto& [name, value] : report.metrics) {
    out += ", ";
    append_json(out, metric_key(name));
    out += ": ";
    append_json(out, value);
  }
  out += '}';
}

}  // namespace detail

std::string Results::csv() const {
  std::string out = "trial,state,steps,best_step";
  const auto field = [&](std::string_view prefix, std::string_view name) {
    out += ',';
    detail::append_csv(out, detail::format("{}{}", prefix, name));
  };
  const auto params = param_names();
  for (const auto& objective : info_.objectives) field("best_", detail::metric_key(objective.metric));
  if (!info_.constraints.empty()) out += ",feasible";
  for (const auto& name : params) field("params_", name);
  for (const auto& name : names_) field("metrics_", name);
  const auto attributes = attribute_names();
  for (const auto& name : attributes) field("attributes_", name);
  out += ",failures,cause,duration\n";
  for (const TrialResult& trial : trials()) {
    out += detail::format("{},{},{},", trial.trial, to_string(trial.state), trial.steps);
    if (trial.best) out += detail::format("{}", trial.best->step);
    for (const auto& objective : info_.objectives) {
      const auto best = best_report(trial.trial, objective);
      field("", best ? detail::format("{}", best->value) : "");
    }
    if (!info_.constraints.empty()) field("", !trial.feasible ? "" : *trial.feasible ? "true" : "false");
    for (const auto& name : params) {
      const Value* value = trial.params.find(name);
      field("", value == nullptr ? "" : to_string(*value));
    }
    for (const auto& name : names_) {
      const double* value = find_metric(trial.metrics, name);
      field("", value == nullptr ? "" : detail::format("{}", *value));
    }
    for (const auto& name : attributes) {
      const Value* value = trial.attributes.find(name);
      field("", value == nullptr ? "" : to_string(*value));
    }
    out += detail::format(",{}", trial.failure_count());
    field("", trial.cause ? trial.cause->text : "");
    field("", trial.duration ? detail::format("{:.3f}", *trial.duration) : "");
    out += '\n';
  }
  return out;
}

std::string Results::json(const TrialResult& result) const {
  std::string out;
  detail::append_trial_json(out, result);
  out += '}';
  return out;
}

std::string Results::json(bool history) const {
  std::string out;
  write_json([&](std::string_view text) { out += text; }, history);
  return out;
}

void Results::write_json(const std::function<void(std::string_view)>& sink, bool history) const {
  std::string text = "[";
  std::size_t next = 0;  // index of the trial that is written next
  std::string reports;
  const auto finish = [&] {
    text += next == 0 ? "\n" : ",\n";
    detail::append_trial_json(text, result(trials_[next], first_objective()));
    if (history) (text += R"(, "history": [)").append(reports) += ']';
    text += '}';
    reports.clear();
    ++next;
    sink(std::string_view(text));
    text.clear();
  };
  if (history && !trials_.empty())
    JournalReader(directory())
        .histories(
            [&](const Record& record) {
              const auto& report = std::get<record::TrialReported>(record.what);
              while (next < trials_.size() && trials_[next].id < report.trial) finish();
              if (next == trials_.size() || trials_[next].id != report.trial) return;
              if (!reports.empty()) reports += ", ";
              detail::append_report_json(reports, report);
            },
            info_.records);
  while (next < trials_.size()) finish();
  text += next == 0 ? "]\n" : "\n]\n";
  sink(std::string_view(text));
}

}  // namespace hypertune::inline v0
