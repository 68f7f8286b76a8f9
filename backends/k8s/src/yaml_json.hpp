// Converts YAML to JSON, for objects that are passed on to Kubernetes.
#pragma once

#include <hypertune/config/yaml.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::inline v0::k8s {

inline boost::json::value json_of(const Node& node) {
  if (node.is_map()) {
    boost::json::object object;
    for (const auto& [key, value] : node.entries()) object[key] = json_of(value);
    return object;
  }
  if (node.is_list()) {
    boost::json::array array;
    for (const auto& item : node.items()) array.push_back(json_of(item));
    return array;
  }
  if (node.is_null()) return nullptr;
  return std::visit(
      [](const auto& value) -> boost::json::value {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
          return boost::json::string(value);
        else
          return value;
      },
      node.scalar());
}

}  // namespace hypertune::inline v0::k8s
