// Ask/tell as JSON: one request in, one answer out, independent of the transport.
#pragma once

#include <hypertune/net/http_answer.hpp>
#include <hypertune/record/analysis.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/tune/study.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

namespace json = boost::json;

/// A number. JSON has neither NaN nor infinity, so "nan", "inf", "-inf" and null (NaN) are accepted, too.
inline double number_from(const json::value& value, std::string_view name) {
  if (value.is_number()) return value.to_number<double>();
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_string()) {
    const std::string_view text = value.get_string();
    if (text == "nan" || text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf" || text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-inf" || text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  fail(Errc::input, "'{}' must be a number, not {}", name, json::serialize(value));
}

inline TrialId trial_from(const json::object& request) {
  const auto* value = request.if_contains("trial");
  if (value == nullptr) fail(Errc::input, "'trial' is missing: the number that /ask gave");
  if (!value->is_int64() && !value->is_uint64())
    fail(Errc::input, "'trial' must be a whole number, not {}", json::serialize(*value));
  boost::system::error_code error;
  const auto trial = value->to_number<std::int64_t>(error);
  if (error) fail(Errc::input, "'trial' is out of range: {}", json::serialize(*value));
  return trial;
}

/// `objectives`: given if the request takes their values.
inline void require_known_keys(const json::object& request, std::initializer_list<std::string_view> known,
                               const std::vector<Objective>& objectives = {}) {
  for (const auto& entry : request) {
    bool found = false;
    std::string names;
    for (const auto& key : known) {
      found = found || std::string_view(entry.key()) == key;
      names += (names.empty() ? "" : ", ") + std::string(key);
    }
    if (found) continue;
    const std::string key(entry.key());
    for (const auto& objective : objectives)
      if (objective.metric == key)
        fail(Errc::input, R"(unknown key '{}': metrics by name stand in 'values', as in "values": {{"{}": …}})", key,
             key);
    fail(Errc::input, "unknown key '{}': this request takes {}", key, names.empty() ? "none" : names);
  }
}

inline std::string names_of(const std::vector<Objective>& objectives) {
  std::string names;
  for (const auto& objective : objectives) names += (names.empty() ? "" : ", ") + objective.metric;
  return names;
}

/// The metrics in a request: `value` if there is one objective, or `values`, an array in the objectives' order or an
/// object by name (which may contain other metrics, too).
inline Metrics metrics_from(const json::object& request, const std::vector<Objective>& objectives) {
  const auto* value = request.if_contains("value");
  const auto* values = request.if_contains("values");
  if (value != nullptr && values != nullptr) fail(Errc::input, "give 'value' or 'values', not both");
  if (value != nullptr) {
    if (objectives.size() != 1)
      fail(Errc::input, "this study has {} objectives: give 'values', an array in the order {}, or an object by name",
           objectives.size(), names_of(objectives));
    return {{objectives.front().metric, number_from(*value, "value")}};
  }
  if (values == nullptr) fail(Errc::input, "'{}' is missing", objectives.size() == 1 ? "value" : "values");
  Metrics metrics;
  if (const auto* list = values->if_array()) {
    if (list->size() != objectives.size())
      fail(Errc::input, "'values' has {} numbers for {} objectives: {}", list->size(), objectives.size(),
           names_of(objectives));
    for (std::size_t i = 0; i < objectives.size(); ++i)
      metrics.emplace_back(objectives[i].metric, number_from((*list)[i], objectives[i].metric));
  } else if (const auto* object = values->if_object()) {
    for (const auto& entry : *object)
      metrics.emplace_back(std::string(entry.key()), number_from(entry.value(), entry.key()));
    for (const auto& objective : objectives)
      if (find_metric(metrics, objective.metric) == nullptr)
        fail(Errc::input, "'values' lacks the objective '{}'", objective.metric);
  } else {
    fail(Errc::input, "'values' must be an array of numbers, or an object of numbers by name");
  }
  return metrics;
}

/// Whether `body`, which is JSON, has `number` in it as a whole number, without a fraction or an exponent.
inline bool is_written_whole(std::string_view body, double number) {
  bool quoted = false;
  for (std::size_t i = 0; i < body.size();) {
    if (quoted || body[i] == '"') {
      if (quoted && body[i] == '\\')
        ++i;
      else if (body[i] == '"')
        quoted = !quoted;
      ++i;
      continue;
    }
    const std::size_t end = std::min(body.find_first_not_of("+-.0123456789eE", i), body.size());
    const std::string_view token = body.substr(i, end - i);
    double value = 0;
    if (token.find_first_of(".eE") == std::string_view::npos &&
        std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc() && value == number)
      return true;
    i = std::max(end, i + 1);
  }
  return false;
}

/// Texts, numbers and flags by name. `body`: the request that `value` is from.
inline Attributes attributes_from(const json::value& value, std::string_view body) {
  const auto* object = value.if_object();
  if (object == nullptr) fail(Errc::input, "'attributes' must be an object of texts, numbers and flags by name");
  Attributes attributes;
  for (const auto& entry : *object) {
    const std::string name(entry.key());
    if (!is_attribute_name(name))
      fail(Errc::input, "an attribute's name must have 1 to {} bytes, not {}, and no control characters",
           max_attribute_name, name.size());
    const auto& given = entry.value();
    if (given.is_string())
      attributes.set(name, std::string(given.get_string()));
    else if (given.is_bool())
      attributes.set(name, given.get_bool());
    else if (given.is_int64())
      attributes.set(name, given.get_int64());
    else if (given.is_uint64() || (given.is_double() && std::fabs(given.get_double()) >= 0x1p63 &&
                                   is_written_whole(body, given.get_double())))
      fail(Errc::input, "the attribute '{}' is beyond the whole numbers from {} to {}: give it as a text", name,
           std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    else if (given.is_double())
      attributes.set(name, given.get_double());
    else
      fail(Errc::input, "the attribute '{}' must be a text, a number, true or false, not {}", name,
           json::serialize(given));
  }
  return attributes;
}

/// Writes a real number. There is no infinity and no NaN in JSON: they are texts that number_from() accepts.
inline void put_real(JsonWriter& out, double number) {
  if (std::isfinite(number))
    out.value(Value(number));
  else
    out.value(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

/// The beginning of a JSON object that is about a trial. Written as text, as everything else that receives parameters:
/// Boost.JSON writes 1.0 as 1E0.
inline JsonWriter& put_trial_of_study(JsonWriter& out, TrialId trial, const Params& params) {
  return out.begin_object().member("trial", trial).key("params").pairs(params);
}

/// The trials that no other trial dominates, with their values.
inline std::string front_json(const Results& results) {
  const auto front = pareto_front(results);
  if (front.empty()) fail(Errc::experiment, "no trial has a value of every objective yet");
  JsonWriter out(JsonFor::file);
  out.begin_object().key("front").begin_array();
  for (const TrialId id : front) {
    const TrialResult trial = results.trial(id);
    put_trial_of_study(out, id, trial.params).key("values").begin_object();
    for (const auto& objective : results.experiment().objectives)
      if (const double* value = find_metric(trial.metrics, objective.metric))
        put_real(out.key(objective.metric), *value);
    out.end_object().end_object();
  }
  return out.end_array().end_object().take();
}

inline std::string best_json(const Results& results) {
  const auto best = results.best();
  JsonWriter out(JsonFor::file);
  put_real(put_trial_of_study(out, best.trial, best.params).key("value"), best.best->value);
  return out.member("step", best.best->step).end_object().take();
}

inline json::object parse_request(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 8;
  auto value = json::parse(json::string_view(body.data(), body.size()), error, {}, options);
  if (error) fail(Errc::input, "the body is not JSON: {}", error.message());
  if (!value.is_object()) fail(Errc::input, "the body must be a JSON object");
  return std::move(value.get_object());
}

}  // namespace detail

/// Carries out one request on `study`: POST /ask, /tell, /report, /note; GET /best (with several objectives: the
/// front). Never throws because of a caller's input: bad input is answered with a status of 4xx and {"error": "…"}, and
/// changes nothing. A failing disk throws.
inline HttpAnswer answer_study(ErasedStudy& study, std::string_view method, std::string_view target,
                               std::string_view body) {
  namespace json = boost::json;
  const auto error = [](int status, std::string_view text) {
    return HttpAnswer{status, json::serialize(json::object{{"error", text}})};
  };
  const bool known =
      target == "/ask" || target == "/tell" || target == "/report" || target == "/note" || target == "/best";
  if (!known) return error(404, "no such resource: POST /ask, POST /tell, POST /report, POST /note, GET /best");
  if (method != (target == "/best" ? "GET" : "POST"))
    return error(405, target == "/best" ? "/best takes GET" : "this resource takes POST");
  try {
    json::object answer;
    if (target == "/best") {
      const bool several = study.objectives().size() > 1;
      return {200, several ? detail::front_json(study.results()) : detail::best_json(study.results())};
    }
    const auto request = detail::parse_request(body);
    if (target == "/ask") {
      detail::require_known_keys(request, {});
      if (const auto asked = study.ask()) {
        detail::JsonWriter out(detail::JsonFor::file);
        detail::put_trial_of_study(out, asked->trial, asked->params).member("step", asked->next_step).end_object();
        return {200, out.take()};
      }
      answer = {{"trial", nullptr}, {"exhausted", study.exhausted()}, {"out", detail::json::value_from(study.out())}};
    } else if (target == "/tell") {
      detail::require_known_keys(request, {"trial", "value", "values", "state", "why", "attributes"},
                                 study.objectives());
      const TrialId trial = detail::trial_from(request);
      const auto* state = request.if_contains("state");
      if ((state != nullptr) + request.contains("value") + request.contains("values") != 1)
        fail(Errc::input, "give exactly one of 'value', 'values' and 'state'");
      Attributes attributes;
      if (const auto* given = request.if_contains("attributes")) attributes = detail::attributes_from(*given, body);
      if (state != nullptr) {
        if (*state != "failed") fail(Errc::input, "'state' can be \"failed\"; a result is told by 'value' or 'values'");
        const auto* why = request.if_contains("why");
        study.tell_failed(trial,
                          why != nullptr && why->is_string() ? std::string(why->get_string()) : "told as failed");
        if (!attributes.empty()) study.note(trial, attributes);
      } else {
        Report result(detail::metrics_from(request, study.objectives()));
        result.attributes = std::move(attributes);
        study.tell(trial, std::move(result));
      }
      answer = {{"trial", trial}};
    } else if (target == "/note") {
      detail::require_known_keys(request, {"trial", "attributes"});
      const auto* given = request.if_contains("attributes");
      if (given == nullptr) fail(Errc::input, "'attributes' is missing");
      const Attributes attributes = detail::attributes_from(*given, body);
      answer = {{"trial", nullptr}};
      if (request.contains("trial")) {
        const TrialId trial = detail::trial_from(request);
        study.note(trial, attributes);
        answer["trial"] = trial;
      } else {
        study.note(attributes);
      }
    } else {
      detail::require_known_keys(request, {"trial", "step", "value", "values", "attributes"}, study.objectives());
      const TrialId trial = detail::trial_from(request);
      Report report(detail::metrics_from(request, study.objectives()));
      if (const auto* given = request.if_contains("attributes"))
        report.attributes = detail::attributes_from(*given, body);
      if (const auto* s = request.if_contains("step")) {
        const double number = detail::number_from(*s, "step");
        if (!(number >= 0 && number <= 2'000'000'000) || number != std::floor(number))
          fail(Errc::input, "'step' must be a whole number from 0");
        report.step = static_cast<int>(number);
      }
      const Decision decision = study.report(trial, std::move(report));
      answer = {{"decision", decision == Decision::complete ? "stop" : to_string(decision)}};
    }
    return {200, json::serialize(answer)};
  } catch (const Error& e) {
    if (e.code() == Errc::io || e.code() == Errc::corrupt) throw;
    return error(e.code() == Errc::input ? 400 : e.code() == Errc::experiment ? 404 : 409, e.what());
  }
}

}  // namespace hypertune::inline v0
