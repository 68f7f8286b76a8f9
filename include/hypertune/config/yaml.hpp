// YAML with positions: every value knows its file and line, and every error message names them.
#pragma once

#include <hypertune/config/detail/old_words.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/error.hpp>
#include <hypertune/option.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

enum class YamlKind : std::uint8_t { null, scalar, list, map };

struct YamlData {
  YamlKind kind = YamlKind::null;
  bool plain = false;  // a scalar without quotes or tag: may be a number, true or false
  int line = 0;
  std::string text;
  std::vector<std::shared_ptr<const YamlData>> items;  // of a list, or the values of a map
  std::vector<std::pair<std::string, int>> keys;       // of a map, with lines
  std::shared_ptr<const std::string> option = {};      // command-line option that it came from, if so: "--set a.b=1"
};

/// A plain scalar as the value that YAML 1.2's core schema gives it.
inline Value plain_value(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.find_first_not_of("+-.eE0123456789") == std::string_view::npos && !digits.starts_with('+') &&
      digits.find_first_of("0123456789") != std::string_view::npos) {
    const char* end = digits.data() + digits.size();
    std::int64_t whole = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, whole);
    if (error == std::errc() && stop == end) return whole;
    double real = 0;
    const auto [stop2, error2] = std::from_chars(digits.data(), end, real);
    if (error2 == std::errc() && stop2 == end) return real;
  }
  if (text == ".inf" || text == "+.inf" || text == ".Inf" || text == ".INF")
    return std::numeric_limits<double>::infinity();
  if (text == "-.inf" || text == "-.Inf" || text == "-.INF") return -std::numeric_limits<double>::infinity();
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  return std::string(text);
}

/// Whether a plain scalar is a whole number that std::int64_t cannot hold, so that plain_value() cannot keep it.
inline bool is_beyond_whole(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('+') || text.starts_with('-') ? 1 : 0);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos &&
         !std::holds_alternative<std::int64_t>(plain_value(text));
}

/// A number that is written as a whole one, or with a fraction or an exponent that leaves it one ("1e6").
struct WrittenWhole {
  bool negative = false;
  std::uint64_t magnitude = 0;
  bool beyond = false;  ///< it does not fit
};
inline std::optional<WrittenWhole> written_whole(std::string_view text) {
  WrittenWhole out{.negative = text.starts_with('-')};
  if (text.starts_with('+') || out.negative) text.remove_prefix(1);
  std::string digits;
  std::int64_t exponent = 0;
  const auto e = std::min(text.find_first_of("eE"), text.size());
  if (e < text.size()) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || end != power.data() + power.size() || std::abs(exponent) > 10'000) return std::nullopt;
  }
  bool point = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.' && !std::exchange(point, true)) continue;
    if (c < '0' || c > '9') return std::nullopt;
    digits += c;
    exponent -= point ? 1 : 0;
  }
  if (digits.empty()) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (exponent < 0 && digits.ends_with('0')) {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) return out;
  if (exponent < 0) return std::nullopt;
  constexpr std::int64_t max_digits = 20;
  out.beyond = static_cast<std::int64_t>(digits.size()) + exponent > max_digits;
  if (out.beyond) return out;
  digits.append(static_cast<std::size_t>(exponent), '0');
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.magnitude);
  out.beyond = error != std::errc();
  return out;
}

/// Receives the keys that a reader of YAML knows and their defaults. For the test that compares the reference in docs/
/// with the readers.
struct KeyWatch {
  std::function<void(const std::string& path, const std::vector<std::string_view>& keys)> known;
  std::function<void(const std::string& path, std::string_view key, const std::string& fallback)> fallback;
};
/// The watch of this thread; null except in that test.
inline KeyWatch*& key_watch() {
  static thread_local KeyWatch* watch = nullptr;
  return watch;
}

}  // namespace detail

namespace detail {

/// An Error about a value of a file.
class PlacedError : public Error {
 public:
  PlacedError(const std::string& message, std::string path) : Error(Errc::input, message), path_(std::move(path)) {}
  const std::string& path() const noexcept { return path_; }  ///< of the value: "space.lr"

 private:
  std::string path_;
};

}  // namespace detail

/// One value of a YAML file. Cheap to copy; immutable. Every accessor that does not find the requested type or key
/// throws an Error of kind `input`: "sweep.yaml:12: 'samples' must be a whole number, not 'many'".
class Node {
 public:
  Node(std::shared_ptr<const detail::YamlData> data, std::shared_ptr<const std::string> file, std::string path)
      : data_(std::move(data)), file_(std::move(file)), path_(std::move(path)) {}

  bool is_null() const { return data_->kind == detail::YamlKind::null; }
  bool is_scalar() const { return data_->kind == detail::YamlKind::scalar; }
  bool is_list() const { return data_->kind == detail::YamlKind::list; }
  bool is_map() const { return data_->kind == detail::YamlKind::map; }

  int line() const { return data_->line; }  ///< counted from 1
  const std::string& file() const { return *file_; }
  const std::string& path() const { return path_; }  ///< "schedule.max_steps"; empty for the whole file
  /// "sweep.yaml:12", or the option of the command line that the value came from.
  std::string where() const { return place(*data_, data_->line); }

  // For override.hpp.
  const detail::YamlData& data() const { return *data_; }
  Node replaced(std::shared_ptr<const detail::YamlData> data) const { return {std::move(data), file_, path_}; }

  /// Throws an Error that starts with the place of this value.
  template <class... Args>
  [[noreturn]] void fail(detail::FormatText<Args...> format, Args&&... args) const {
    throw error(detail::format(format, std::forward<Args>(args)...));
  }
  /// The same, not thrown.
  detail::PlacedError error(std::string_view text) const { return {fmt::format("{}: {}", where(), text), path_}; }

  // Maps.
  std::optional<Node> find(std::string_view key) const {
    expect_map();
    for (std::size_t i = 0; i < data_->keys.size(); ++i)
      if (data_->keys[i].first == key) return value(i);
    return std::nullopt;
  }
  bool has(std::string_view key) const { return find(key).has_value(); }
  /// The value of a required key.
  Node operator[](std::string_view key) const {
    if (auto found = find(key)) return *std::move(found);
    fail("{} has no '{}': add it", title(), key);
  }
  /// Keys and values in the order of the file.
  std::vector<std::pair<std::string, Node>> entries() const {
    expect_map();
    std::vector<std::pair<std::string, Node>> all;
    all.reserve(data_->keys.size());
    for (std::size_t i = 0; i < data_->keys.size(); ++i) all.emplace_back(data_->keys[i].first, value(i));
    return all;
  }
  /// Throws an Error at the first key that is not one of `known`; it suggests the most similar one.
  void only(const std::vector<std::string_view>& known) const {
    expect_map();
    if (const auto* watch = detail::key_watch()) watch->known(path_, known);
    for (const auto& [key, line] : data_->keys)
      if (std::find(known.begin(), known.end(), key) == known.end()) refuse_key(key, known);
  }
  /// Throws the Error of only() for one of the map's keys.
  [[noreturn]] void refuse_key(std::string_view key, const std::vector<std::string_view>& known) const {
    const auto at = std::find_if(data_->keys.begin(), data_->keys.end(), [&](const auto& k) { return k.first == key; });
    const std::string where = place(*data_->items[static_cast<std::size_t>(at - data_->keys.begin())], at->second);
    const std::string path = value(static_cast<std::size_t>(at - data_->keys.begin())).path();
    if (const auto* old = detail::old_key(key, known); old != nullptr)
      throw detail::PlacedError(fmt::format("{}: '{}' is now '{}'", where, key, old->now), path);
    throw detail::PlacedError(
        fmt::format("{}: unknown key '{}' in {}{}", where, key, title(), detail::suggestion(key, known)), path);
  }

  // Lists.
  std::vector<Node> items() const {
    if (!is_list()) fail("{} must be a list [a, b, …], not {}", title(), kind_text());
    std::vector<Node> all;
    all.reserve(data_->items.size());
    for (std::size_t i = 0; i < data_->items.size(); ++i)
      all.emplace_back(data_->items[i], file_, fmt::format("{}[{}]", path_, i));
    return all;
  }
  std::size_t size() const { return data_->items.size(); }

  // Scalars.
  /// The value as bool, as an integer or floating point type, or as std::string.
  template <class T>
  T as() const {
    if constexpr (std::same_as<T, std::string>) {
      if (!is_scalar()) fail("{} must be a text, not {}", title(), kind_text());
      return data_->text;
    } else if constexpr (std::same_as<T, bool>) {
      for (const char* word : {"true", "True", "TRUE", "yes", "on"})
        if (is_scalar() && data_->plain && data_->text == word) return true;
      for (const char* word : {"false", "False", "FALSE", "no", "off"})
        if (is_scalar() && data_->plain && data_->text == word) return false;
      fail("{} must be true or false, not {}", title(), kind_text());
    } else if constexpr (std::integral<T>) {
      const auto whole = is_scalar() && data_->plain ? detail::written_whole(data_->text) : std::nullopt;
      if (!whole) fail("{} must be a whole number, not {}", title(), kind_text());
      constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      if (whole->beyond || whole->magnitude > most + (whole->negative && std::is_signed_v<T> ? 1 : 0) ||
          (whole->negative && whole->magnitude > 0 && !std::is_signed_v<T>))
        fail("{} must be from {} to {}, not {}", title(), std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
             data_->text);
      return static_cast<T>(whole->negative ? std::uint64_t{0} - whole->magnitude : whole->magnitude);
    } else {
      static_assert(std::floating_point<T>, "Node::as<T>: bool, a number type or std::string");
      const Value value = is_scalar() && data_->plain ? detail::plain_value(data_->text) : Value(false);
      if (const auto* x = std::get_if<std::int64_t>(&value)) return static_cast<T>(*x);
      if (const auto* x = std::get_if<double>(&value); x != nullptr && !std::isnan(*x)) return static_cast<T>(*x);
      fail("{} must be a number, not {}", title(), kind_text());
    }
  }
  /// The value of a key, or `fallback` where the map has no such key.
  template <class T>
  T get(std::string_view key, T fallback) const {
    if (const auto* watch = detail::key_watch()) watch->fallback(path_, key, fmt::format("{}", fallback));
    const auto found = find(key);
    return found ? found->template as<T>() : std::move(fallback);
  }

  /// A bool, number or text as written in the file: 3 is a whole number, 3.0 a real one, "3" a text. A whole number
  /// that std::int64_t cannot hold is an Error: it would be rounded.
  Value scalar() const {
    if (!is_scalar()) fail("{} must be a single value, not {}", title(), kind_text());
    if (!data_->plain) return data_->text;
    if (detail::is_beyond_whole(data_->text))
      fail("{} is {}: whole numbers go from {} to {}; write it in quotes to pass it on as a text", title(),
           data_->text.size() > 60 ? data_->text.substr(0, 60) + "…" : data_->text,
           std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    return detail::plain_value(data_->text);
  }
  /// A single value as a text: true, false, or what is written (1.10 stays 1.10).
  std::string written() const {
    if (!is_scalar()) fail("{} must be a single value, not {}", title(), kind_text());
    const Value value = data_->plain ? detail::plain_value(data_->text) : Value(data_->text);
    return std::holds_alternative<bool>(value) ? to_string(value) : data_->text;
  }
  Seconds duration() const {
    if (is_scalar())
      if (const auto seconds = parse_duration(data_->text)) return *seconds;
    fail("{} must be a duration like 90s, 10m or 1h30m, not {}", title(), kind_text());
  }
  std::uint64_t bytes() const {
    if (is_scalar())
      if (const auto size = parse_size(data_->text)) return *size;
    fail("{} must be a size like 500MB or 4GiB, not {}", title(), kind_text());
  }
  /// A text, or a list of texts.
  std::vector<std::string> texts() const {
    if (!is_list()) return {as<std::string>()};
    std::vector<std::string> all;
    for (const auto& item : items()) all.push_back(item.as<std::string>());
    return all;
  }

  /// "'schedule.max_steps'", or "this file" for the root.
  std::string title() const { return path_.empty() ? "this file" : fmt::format("'{}'", path_); }
  /// "'many'", "a list", … for messages.
  std::string kind_text() const {
    switch (data_->kind) {
      case detail::YamlKind::null: return "empty";
      case detail::YamlKind::list: return "a list";
      case detail::YamlKind::map: return "a map";
      case detail::YamlKind::scalar: break;
    }
    return data_->text.size() > 60 ? fmt::format("'{}…'", data_->text.substr(0, 60)) : fmt::format("'{}'", data_->text);
  }

 private:
  std::string place(const detail::YamlData& data, int line) const {
    return data.option ? *data.option : fmt::format("{}:{}", *file_, line);
  }
  void expect_map() const {
    if (!is_map()) fail("{} must be a map of key: value, not {}", title(), kind_text());
  }
  Node value(std::size_t i) const {
    const auto& key = data_->keys[i].first;
    return Node(data_->items[i], file_, path_.empty() ? key : path_ + "." + key);
  }

  std::shared_ptr<const detail::YamlData> data_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
};

/// Reads one YAML document. `name` stands for the file in messages. Malformed text, or more than 1 MiB, 64 levels or
/// 100,000 values (with aliases expanded), is an Error of kind `input` with its line. `first_line`: the number of the
/// text's first line, if it is a part of a file.
Node load_yaml_text(std::string_view text, std::string name = "yaml", int first_line = 1);

/// Reads a file; Error of kind `input` also if it cannot be read.
Node load_yaml_file(const std::filesystem::path& file);

namespace detail {

/// A non-negative number up to 1e9, such as a resource or a price.
inline double amount(const Node& node) {
  const double value = node.as<double>();
  if (!(value >= 0 && value <= 1e9)) node.fail("'{}' must be from 0 to 1e9, not {}", node.path(), value);
  return value;
}

/// Returns the result of make(). An Error without a line gets the line of the option that it is about, or of `node`.
template <class Make>
auto checked(const Node& node, Make&& make) {
  try {
    return make();
  } catch (const OptionError& e) {
    const auto given = node.is_map() ? node.find(e.option()) : std::nullopt;
    (given ? *given : node).fail("{}", e.what());
  } catch (const Error& e) {
    if (e.code() == Errc::input) throw;
    node.fail("{}", e.what());
  }
}

}  // namespace detail

}  // namespace hypertune::inline v0

#include <hypertune/config/detail/yaml_reader.hpp>  // the definitions
