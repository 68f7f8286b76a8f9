// YAML as JSON, for what is passed on to other programs as it is.
#pragma once

#include <hypertune/config/yaml.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <fmt/format.h>

#include <cmath>
#include <variant>

namespace hypertune::inline v0::detail {

/// Writes a node and its children. 1.0 is 1, as kubectl writes it; what JSON cannot represent is the text of the file.
inline JsonWriter& put_yaml(JsonWriter& out, const Node& node) {
  if (node.is_map()) {
    out.begin_object();
    for (const auto& [key, value] : node.entries()) put_yaml(out.key(key), value);
    return out.end_object();
  }
  if (node.is_list()) {
    out.begin_array();
    for (const auto& item : node.items()) put_yaml(out, item);
    return out.end_array();
  }
  if (node.is_null()) return out.value(nullptr);
  const Value value = node.scalar();
  if (const auto* truth = std::get_if<bool>(&value)) return out.value(*truth);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return out.value(*whole);
  if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isfinite(*real))
    return out.raw(fmt::format("{}", *real));
  return out.value(node.as<std::string>());
}

}  // namespace hypertune::inline v0::detail
