// JSON for people: indented, with short values on one line.
#pragma once

#include <boost/json.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// `value`, indented by two spaces for each level; what fits into 100 characters is written on one line.
inline std::string print_json(const boost::json::value& value, std::size_t indent = 0) {
  std::string line = boost::json::serialize(value);
  if (indent + line.size() <= 100 || value.is_primitive()) return line;
  const std::string margin(indent + 2, ' ');
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "\n" : ",\n") + margin + text; };
  if (const auto* list = value.if_array()) {
    for (const auto& item : *list) add(print_json(item, indent + 2));
    return "[" + out + "\n" + std::string(indent, ' ') + "]";
  }
  for (const auto& [name, item] : value.get_object())
    add(boost::json::serialize(boost::json::value(name)) + ": " + print_json(item, indent + 2));
  return "{" + out + "\n" + std::string(indent, ' ') + "}";
}

}  // namespace hypertune::inline v0::command
