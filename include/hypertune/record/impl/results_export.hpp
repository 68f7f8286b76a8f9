// Results as CSV and as JSON. Included by impl/results.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/record/impl/results_state.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <span>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

std::string schedule_json(std::span<const ScheduleEntry> schedule) {
  detail::JsonWriter out(detail::JsonFor::file);
  out.begin_array();
  for (const auto& entry : schedule) {
    out.next("\n  ").begin_object().member("from_step", entry.from_step).member("trial", entry.trial);
    out.key("params").pairs(entry.params).end_object();
  }
  return out.white("\n").end_array().white("\n").take();
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

/// The caller closes it.
inline void put_trial(JsonWriter& out, const TrialResult& trial) {
  out.begin_object().member("trial", trial.trial).member("state", to_string(trial.state));
  out.key("params").pairs(trial.params).member("steps", trial.steps).key("metrics").pairs(trial.metrics).key("best");
  if (trial.best)
    out.begin_object()
        .member("step", trial.best->step)
        .member(metric_key(trial.best->metric), trial.best->value)
        .end_object();
  else
    out.value(nullptr);
  if (trial.feasible) out.member("feasible", *trial.feasible);
  if (!trial.attributes.empty()) out.key("attributes").pairs(trial.attributes);
  out.member("failures", trial.failure_count()).key("cause");
  trial.cause ? out.value(trial.cause->text) : out.value(nullptr);
}

inline void put_report(JsonWriter& out, const record::TrialReported& report) {
  out.begin_object().member("step", report.step);
  for (const auto& [name, value] : report.metrics) out.member(metric_key(name), value);
  out.end_object();
}

}  // namespace detail

std::string Results::csv() const {
  std::string out = "trial,state,steps,best_step";
  const auto field = [&](std::string_view prefix, std::string_view name) {
    out += ',';
    detail::append_csv(out, detail::format("{}{}", prefix, name));
  };
  const auto params = param_names();
  for (const auto& objective : self().info.objectives) field("best_", detail::metric_key(objective.metric));
  if (!self().info.constraints.empty()) out += ",feasible";
  for (const auto& name : params) field("params_", name);
  for (const auto& name : self().names) field("metrics_", name);
  const auto attributes = attribute_names();
  for (const auto& name : attributes) field("attributes_", name);
  out += ",failures,cause,duration\n";
  for (const TrialResult& trial : trials()) {
    out += detail::format("{},{},{},", trial.trial, to_string(trial.state), trial.steps);
    if (trial.best) out += detail::format("{}", trial.best->step);
    for (const auto& objective : self().info.objectives) {
      const auto best = best_report(trial.trial, objective);
      field("", best ? detail::format("{}", best->value) : "");
    }
    if (!self().info.constraints.empty()) field("", !trial.feasible ? "" : *trial.feasible ? "true" : "false");
    for (const auto& name : params) {
      const Value* value = trial.params.find(name);
      field("", value == nullptr ? "" : to_string(*value));
    }
    for (const auto& name : self().names) {
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
  detail::JsonWriter out(detail::JsonFor::file);
  detail::put_trial(out, result);
  return out.end_object().take();
}

std::string Results::json(bool history) const {
  std::string out;
  write_json([&](std::string_view text) { out += text; }, history);
  return out;
}

void Results::write_json(const std::function<void(std::string_view)>& sink, bool history) const {
  using detail::JsonFor;
  detail::JsonWriter out(JsonFor::file), reports(JsonFor::file);
  out.begin_array();
  std::size_t next = 0;  // index of the trial that is written next
  const auto finish = [&] {
    detail::put_trial(out.next("\n"), result(self().trials[next], first_objective()));
    if (history) {
      out.key("history").begin_array();
      if (reports.size() > 0) out.raw(std::exchange(reports, detail::JsonWriter(JsonFor::file)).take());
      out.end_array();
    }
    out.end_object();
    ++next;
    sink(out.take());
  };
  if (history && !self().trials.empty())
    JournalReader(directory())
        .histories(
            [&](const Record& record) {
              const auto& report = std::get<record::TrialReported>(record.what);
              while (next < self().trials.size() && self().trials[next].id < report.trial) finish();
              if (next == self().trials.size() || self().trials[next].id != report.trial) return;
              detail::put_report(reports, report);
            },
            self().info.records);
  while (next < self().trials.size()) finish();
  sink(out.white(next == 0 ? "" : "\n").end_array().white("\n").take());
}

}  // namespace hypertune::inline v0
