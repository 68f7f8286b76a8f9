// Ask/tell as JSON: one request in, one answer out, whatever carries them.
#pragma once

#include <hypertune/serve/http_answer.hpp>
#include <hypertune/tune/study.hpp>

#include <boost/json.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune {

namespace detail {

namespace json = boost::json;

inline json::value to_json(const Params& params) {
  json::object object;
  for (const auto& [name, value] : params)
    object[name] = std::visit([](const auto& v) { return json::value(v); }, value);
  return object;
}

/// A number; JSON has no NaN and no infinity, so "nan", "inf", "-inf" and null (NaN) are taken too.
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

inline void require_known_keys(const json::object& request, std::initializer_list<std::string_view> known) {
  for (const auto& entry : request) {
    bool found = false;
    std::string names;
    for (const auto& key : known) {
      found = found || std::string_view(entry.key()) == key;
      names += (names.empty() ? "" : ", ") + std::string(key);
    }
    if (!found) fail(Errc::input, "unknown key '{}': this request takes {}", std::string_view(entry.key()), names);
  }
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

/// Carries out one request on `study`: POST /ask, /tell, /report; GET /best. Never throws for what a caller sent: bad
/// input is an answer of 4xx with {"error": "…"} and changes nothing. A failing disk throws.
inline HttpAnswer answer_study(ErasedStudy& study, std::string_view method, std::string_view target,
                               std::string_view body) {
  namespace json = boost::json;
  const auto error = [](int status, std::string_view text) {
    return HttpAnswer{status, json::serialize(json::object{{"error", text}})};
  };
  const bool known = target == "/ask" || target == "/tell" || target == "/report" || target == "/best";
  if (!known) return error(404, "no such resource: POST /ask, POST /tell, POST /report, GET /best");
  if (method != (target == "/best" ? "GET" : "POST"))
    return error(405, target == "/best" ? "/best takes GET" : "this resource takes POST");
  try {
    json::object answer;
    if (target == "/best") {
      const auto best = study.results().best();
      answer = {{"trial", best.trial},
                {"params", detail::to_json(best.params)},
                {"value", best.best->value},
                {"step", best.best->step}};
      return {200, json::serialize(answer)};
    }
    const auto request = detail::parse_request(body);
    if (target == "/ask") {
      detail::require_known_keys(request, {});
      if (const auto asked = study.ask())
        answer = {{"trial", asked->trial}, {"params", detail::to_json(asked->params)}, {"step", asked->next_step}};
      else
        answer = {{"trial", nullptr}, {"exhausted", study.exhausted()}};
    } else if (target == "/tell") {
      detail::require_known_keys(request, {"trial", "value", "values", "state", "why"});
      const TrialId trial = detail::trial_from(request);
      const auto* state = request.if_contains("state");
      const auto* value = request.if_contains("value");
      const auto* values = request.if_contains("values");
      if ((state != nullptr) + (value != nullptr) + (values != nullptr) != 1)
        fail(Errc::input, "give exactly one of 'value', 'values' and 'state'");
      if (state != nullptr) {
        if (*state != "failed") fail(Errc::input, "'state' can be \"failed\"; a result is told by 'value' or 'values'");
        const auto* why = request.if_contains("why");
        study.tell_failed(trial,
                          why != nullptr && why->is_string() ? std::string(why->get_string()) : "told as failed");
      } else if (value != nullptr) {
        study.tell(trial, detail::number_from(*value, "value"));
      } else {
        if (!values->is_array()) fail(Errc::input, "'values' must be an array of numbers");
        std::vector<double> numbers;
        for (const auto& v : values->get_array()) numbers.push_back(detail::number_from(v, "values"));
        study.tell(trial, numbers);
      }
      answer = {{"trial", trial}};
    } else {
      detail::require_known_keys(request, {"trial", "step", "value", "values"});
      const TrialId trial = detail::trial_from(request);
      const auto* value = request.if_contains("value");
      if (value == nullptr) fail(Errc::input, "'value' is missing");
      std::optional<int> step;
      if (const auto* s = request.if_contains("step")) {
        const double number = detail::number_from(*s, "step");
        if (!(number >= 0 && number <= 2'000'000'000) || number != std::floor(number))
          fail(Errc::input, "'step' must be a whole number from 0");
        step = static_cast<int>(number);
      }
      const Decision decision =
          study.report(trial, Metrics{{study.objective(), detail::number_from(*value, "value")}}, step);
      answer = {{"decision", decision == Decision::complete ? "stop" : to_string(decision)}};
    }
    return {200, json::serialize(answer)};
  } catch (const Error& e) {
    if (e.code() == Errc::io || e.code() == Errc::corrupt) throw;
    return error(e.code() == Errc::input ? 400 : e.code() == Errc::experiment ? 404 : 409, e.what());
  }
}

}  // namespace hypertune
