// JsonWriter: writes JSON as text, one value after another, without building a document.
#pragma once

#include <hypertune/record/detail/json_text.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Whether JavaScript shows all digits of a whole number. The page is given others as texts.
constexpr bool is_exact_in_browser(std::int64_t whole) {
  constexpr std::int64_t limit = std::int64_t{1} << 53;
  return whole >= -limit && whole <= limit;
}

/// For whom JSON is written. `page`: without spaces, and no digit of a Value gets lost in JavaScript. `file`: a space
/// after each comma and colon.
enum class JsonFor : std::uint8_t { page, file };

/// Inserts the commas. Numbers that are not finite become the strings "NaN", "Infinity", "-Infinity"; bytes that are
/// not UTF-8 become U+FFFD. The caller must close everything it opens.
class JsonWriter {
 public:
  /// `begun`: what the JSON is appended to.
  explicit JsonWriter(JsonFor whom = JsonFor::page, std::string begun = {}) : text_(std::move(begun)), whom_(whom) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name) {
    comma();
    append_json(text_, name);
    text_ += whom_ == JsonFor::file ? ": " : ":";
    first_ = true;
    return *this;
  }
  JsonWriter& value(std::nullptr_t) { return raw("null"); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(double number) {
    comma();
    append_json(text_, number);
    return *this;
  }
  template <std::integral Number>
  JsonWriter& value(Number number) {
    comma();
    append_number(text_, number);
    return *this;
  }
  JsonWriter& value(std::string_view text) {
    comma();
    append_json(text_, text);
    return *this;
  }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const Value& any) {
    if (const auto* whole = std::get_if<std::int64_t>(&any);
        whom_ == JsonFor::page && whole != nullptr && !is_exact_in_browser(*whole))
      return value(to_string(any));
    comma();
    append_json(text_, any);
    return *this;
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& what) {
    return what ? value(*what) : value(nullptr);
  }
  template <class T>
  JsonWriter& value(const std::vector<T>& list) {
    begin_array();
    for (const auto& each : list) value(each);
    return end_array();
  }
  /// An object of values by name: Params, Metrics, Attributes.
  template <class Pairs>
  JsonWriter& pairs(const Pairs& all) {
    begin_object();
    for (const auto& [name, each] : all) key(name).value(each);
    return end_object();
  }
  /// A value that is JSON already.
  JsonWriter& raw(std::string_view json) {
    comma();
    text_ += json;
    return *this;
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& what) {
    key(name);
    return value(what);
  }
  /// A member with a list of the elements of `list`.
  template <class List>
  JsonWriter& values(std::string_view name, const List& list) {
    key(name).begin_array();
    for (const auto& each : list) value(each);
    return end_array();
  }
  /// What separates the elements of an array in a file: the comma, if it is not the first one, and this white space.
  JsonWriter& next(std::string_view space) {
    if (!first_) text_ += ',';
    first_ = true;
    return white(space);
  }
  JsonWriter& white(std::string_view space) {
    text_ += space;
    return *this;
  }

  std::size_t size() const { return text_.size(); }
  /// What has been written since the last call. One may go on.
  std::string take() { return std::exchange(text_, {}); }

 private:
  void comma() {
    if (!first_) text_ += whom_ == JsonFor::file ? ", " : ",";
    first_ = false;
  }
  JsonWriter& open(char bracket) {
    comma();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }

  std::string text_;
  JsonFor whom_;
  bool first_ = true;
};

}  // namespace hypertune::inline v0::detail
