// Reading JSON of other programs. What is missing or of another type is empty, or nullptr.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

namespace json = boost::json;

/// nullopt if the text is not valid JSON, or is nested more than 64 deep.
inline std::optional<json::value> parse_json(std::string_view text) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 64;
  auto value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return std::nullopt;
  return value;
}

inline const json::value* value_in(const json::object& object, std::string_view key) {
  return object.if_contains(json::string_view(key.data(), key.size()));
}
inline const json::object* object_in(const json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  return value != nullptr ? value->if_object() : nullptr;
}
inline const json::array* array_in(const json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  return value != nullptr ? value->if_array() : nullptr;
}
inline std::string_view text_in(const json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  const auto* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string_view(text->data(), text->size()) : std::string_view();
}

/// Calls `f` with each object of the array `key`.
template <class F>
void each_object(const json::object& object, std::string_view key, const F& f) {
  if (const auto* array = array_in(object, key))
    for (const auto& item : *array)
      if (const auto* one = item.if_object()) f(*one);
}

/// As above, for a value that may be no object.
inline const json::object* object_in(const json::value& value, std::string_view key) {
  const auto* object = value.if_object();
  return object != nullptr ? object_in(*object, key) : nullptr;
}
inline const json::array* array_in(const json::value& value, std::string_view key) {
  const auto* object = value.if_object();
  return object != nullptr ? array_in(*object, key) : nullptr;
}

}  // namespace hypertune::inline v0::remote::detail
