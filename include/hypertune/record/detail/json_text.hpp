// Writing JSON, one value at a time, without building a document: for results, logs and the Journal's readable columns.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/report.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hypertune::inline v0::detail {

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD, because JSON cannot represent them.
inline void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto [bytes, code, valid] = decode_utf8(text);
    const char c = text.front();
    if (!valid)
      out += "\xEF\xBF\xBD";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += detail::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  out += '"';
}
inline void append_json(std::string& out, const std::string& text) { append_json(out, std::string_view(text)); }

/// Appends the shortest text of a finite number that reads back as the same.
template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

/// Appends the shortest number that reads back as the same double. JSON cannot represent non-finite numbers: they are
/// the strings "NaN", "Infinity" and "-Infinity", which Python's float() and JavaScript's Number() can read.
inline void append_json(std::string& out, double value) {
  if (std::isnan(value))
    out += "\"NaN\"";
  else if (std::isinf(value))
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  else
    append_number(out, value);
}

/// A real number is written as one ("1.0"), because languages whose numbers have types tell it from a whole one.
inline void append_json(std::string& out, const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
    append_number(out, *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    const std::size_t begin = out.size();
    append_json(out, *real);
    if (out.find_first_not_of("-0123456789", begin) == std::string::npos) out += ".0";
  } else {
    append_json(out, std::get<std::string>(value));
  }
}

/// Appends pairs of a name and a value as an object: Params, Metrics.
template <class Pairs>
void append_json_object(std::string& out, const Pairs& pairs) {
  out += '{';
  const char* separator = "";
  for (const auto& [name, value] : pairs) {
    out += separator;
    append_json(out, std::string_view(name));
    out += ": ";
    append_json(out, value);
    separator = ", ";
  }
  out += '}';
}

}  // namespace hypertune::inline v0::detail
