#include "source.hpp"

#include "../dashboard/report_answers.hpp"
#include "text.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <cmath>

namespace hypertune::inline v0::plot {

std::optional<double> fit(const json::value& value, bool log) {
  if (!value.is_number()) return std::nullopt;
  const auto known = value.to_number<double>();
  return std::isfinite(known) && (!log || known > 0) ? std::optional(known) : std::nullopt;
}

const json::value& at(const json::value& object, std::string_view name) {
  static const json::value null;
  const auto* const members = object.if_object();
  const auto* const found = members == nullptr ? nullptr : detail::value_in(*members, name);
  return found == nullptr ? null : *found;
}

std::string_view text(const json::value& value) {
  const auto* const string = value.if_string();
  return string == nullptr ? std::string_view() : std::string_view(string->data(), string->size());
}

bool is_true(const json::value& value) { return value.is_bool() && value.get_bool(); }

const json::array& list(const json::value& value) {
  static const json::array none;
  const auto* const array = value.if_array();
  return array == nullptr ? none : *array;
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const Names& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 30; ++i) out += (i == 0 ? "" : ", ") + shortened(names[i], 60);
  return names.empty() ? "none" : names.size() > 30 ? out + ", …" : out;
}

Table::Table(const json::value& answer) {
  for (const auto& one : list(at(answer, "trial"))) trial.push_back(real(one));
  for (const auto& one : list(at(answer, "state"))) state.emplace_back(text(one));
  if (const auto* all = at(answer, "columns").if_object())
    for (const auto& [name, values] : *all) columns.emplace(std::string(name), list(values));
}

namespace {

// Names of parameters and metrics in requests: a name that would be ambiguous or too long is replaced by its index.
std::string field_of(const Names& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  const bool awkward = name.size() > 80 || name.find_first_of(",\"@") != std::string::npos;
  return awkward && found != names.end() ? fmt::format("@{}", found - names.begin()) : name;
}

}  // namespace

Source::Source(const dashboard::Api& api, const Picture& picture, std::string experiment)
    : picture(picture), experiment_(std::move(experiment)), api_(api) {
  summary = get("/api/summary");
  if (const auto trouble = text(at(summary, "error")); !trouble.empty()) fail(Errc::input, "{}", trouble);
  for (const auto& objective : list(at(summary, "objectives"))) {
    objectives.emplace_back(text(at(objective, "metric")));
    modes_.emplace(objectives.back(), text(at(objective, "mode")));
  }
  for (const auto& name : list(at(summary, "metrics"))) metrics.emplace_back(text(name));
  for (const auto& one : list(at(summary, "parameters"))) {
    parameters_.emplace_back(text(at(one, "name")));
    if (const auto kind = text(at(one, "kind")); kind == "fixed" || kind == "text") continue;
    varied.push_back(parameters_.back());
    described_.emplace(varied.back(), one);
  }
  for (const auto& name : picture.metrics)
    if (!contains(metrics, name))
      fail(Errc::input, "there is no metric '{}'; there are: {}", shortened(name, 100), listed(metrics));
  for (const auto& name : picture.parameters)
    if (!contains(parameters_, name))
      fail(Errc::input, "there is no parameter '{}'; there are: {}", shortened(name, 100), listed(parameters_));
  for (const auto& name : picture.parameters)
    if (!contains(varied, name))
      fail(Errc::input, "the parameter '{}' does not vary: it has nothing to draw", shortened(name, 100));
  if (!picture.metrics.empty())
    metric = picture.metrics.front();
  else if (!objectives.empty())
    metric = objectives.front();
  least_is_best = mode_of(contains(objectives, metric) || objectives.empty() ? metric : objectives.front()) == "min";
}

json::value Source::get(const std::string& path, std::vector<std::pair<std::string, std::string>> parameters) const {
  parameters.emplace_back("experiment", experiment_);
  return json::parse(api_.body(dashboard::request_key(path, std::move(parameters))));
}

Table Source::points(const Names& parameters, const Names& metrics_wanted) const {
  Names fields;
  for (const auto& one : parameters) fields.push_back(field_of_parameter(one));
  for (const auto& one : metrics_wanted) fields.push_back(field_of_metric(one));
  Table table(
      get("/api/points",
          {{"fields", fmt::format("{}", fmt::join(fields, ","))}, {"limit", "3000"}, {"filter", picture.filter}}));
  if (table.trial.empty())
    fail(Errc::input, "there is nothing to draw: {}",
         picture.filter.empty() ? "there are no trials yet" : "no trial matches the filter");
  return table;
}

std::string Source::mode_of(const std::string& name) const {
  const auto found = modes_.find(name);
  return found == modes_.end() ? "min" : found->second;
}

std::string Source::field_of_metric(const std::string& name) const {
  return name == "duration" ? name : field_of(metrics, name);
}

std::string Source::field_of_parameter(const std::string& name) const {
  return "params." + field_of(parameters_, name);
}

std::optional<double> Source::best() const {
  const auto& all = list(at(summary, "best"));
  return objectives.size() == 1 && !all.empty() ? fit(at(all.front(), "trial")) : std::nullopt;
}

Names Source::chosen(std::size_t most, std::size_t least) const {
  if (varied.size() < least)
    fail(Errc::input, "there is nothing to draw: there is {} parameter that varies", varied.empty() ? "no" : "but one");
  const Names& asked = picture.parameters;
  if (asked.size() > most)
    fail(Errc::input, "'{}' takes {}, not {}", picture.kind,
         most == 1 ? "one parameter" : fmt::format("at most {} parameters", most), asked.size());
  if (asked.size() >= least && !asked.empty()) return asked;
  std::vector<std::pair<double, std::string>> ranked;
  const auto answer = get("/api/importance", {{"metric", field_of_metric(metric)}});
  for (const auto& row : list(at(answer, "importance")))
    ranked.emplace_back(real(at(row, "value")), text(at(row, "name")));
  hypertune::detail::stable_sort(ranked.begin(), ranked.end(),
                                 [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& name : varied) ranked.emplace_back(0, name);
  Names all = asked;
  for (const auto& [value, name] : ranked)
    if (contains(varied, name) && !contains(all, name)) all.push_back(name);
  all.resize(std::min(all.size(), asked.empty() ? most : least));
  return all;
}

void Source::reported() const {
  if (metric.empty() || !contains(metrics, metric))
    fail(Errc::input, "there is nothing to draw: no trial has reported a metric yet");
}

void Source::drawable(const Column& values, bool log, const std::string& of) const {
  const auto some = [&](bool on) {
    return std::any_of(values.begin(), values.end(), [&](const json::value& value) { return fit(value, on); });
  };
  if (some(log)) return;
  const std::string name = shortened(of, 60);
  if (log && some(false))
    fail(Errc::input, "there is nothing to draw: no value of '{}' is above 0, which a logarithm needs", name);
  fail(Errc::input, "there is nothing to draw: no trial has a finite value of '{}'", name);
}

}  // namespace hypertune::inline v0::plot
