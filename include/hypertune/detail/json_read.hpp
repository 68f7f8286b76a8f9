// Reading JSON of other programs. What is missing or of another type is empty, nullptr, 0 or false.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// nullopt if the text is not valid JSON, or is nested more than 64 deep.
inline std::optional<boost::json::value> parse_json(std::string_view text, boost::json::storage_ptr storage = {}) {
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = 64;
  auto value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error, storage, options);
  if (error) return std::nullopt;
  return value;
}

inline const boost::json::value* value_in(const boost::json::object& object, std::string_view key) {
  return object.if_contains(boost::json::string_view(key.data(), key.size()));
}
inline const boost::json::object* object_in(const boost::json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  return value != nullptr ? value->if_object() : nullptr;
}
inline const boost::json::array* array_in(const boost::json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  return value != nullptr ? value->if_array() : nullptr;
}
inline std::string_view text_in(const boost::json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  const auto* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string_view(text->data(), text->size()) : std::string_view();
}
inline double number_in(const boost::json::object& object, std::string_view key, double fallback = 0) {
  const auto* value = value_in(object, key);
  if (value == nullptr || !value->is_number()) return fallback;
  boost::json::error_code error;
  const double x = value->to_number<double>(error);
  return error ? fallback : x;
}
inline bool flag_in(const boost::json::object& object, std::string_view key) {
  const auto* value = value_in(object, key);
  const auto* flag = value != nullptr ? value->if_bool() : nullptr;
  return flag != nullptr && *flag;
}

/// As above, for a value that may be no object.
inline const boost::json::object* object_in(const boost::json::value& value, std::string_view key) {
  const auto* object = value.if_object();
  return object != nullptr ? object_in(*object, key) : nullptr;
}
inline const boost::json::array* array_in(const boost::json::value& value, std::string_view key) {
  const auto* object = value.if_object();
  return object != nullptr ? array_in(*object, key) : nullptr;
}

/// Calls `f` with each object of the array `key`.
template <class F>
void each_object(const boost::json::object& object, std::string_view key, const F& f) {
  if (const auto* array = array_in(object, key))
    for (const auto& item : *array)
      if (const auto* one = item.if_object()) f(*one);
}

/// What is at a JSON pointer, as in "/metadata/uid".
inline const boost::json::value* value_at(const boost::json::value& value, std::string_view pointer) {
  boost::json::error_code error;
  return value.find_pointer(boost::json::string_view(pointer.data(), pointer.size()), error);
}
inline const boost::json::array* array_at(const boost::json::value& value, std::string_view pointer) {
  const auto* found = value_at(value, pointer);
  return found != nullptr ? found->if_array() : nullptr;
}
inline std::string text_at(const boost::json::value& value, std::string_view pointer) {
  const auto* found = value_at(value, pointer);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}
inline bool flag_at(const boost::json::value& value, std::string_view pointer) {
  const auto* found = value_at(value, pointer);
  return found != nullptr && found->is_bool() && found->get_bool();
}

}  // namespace hypertune::inline v0::detail
