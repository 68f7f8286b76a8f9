#include "schema.hpp"

#include "json_print.hpp"

#include <hypertune/cluster/config.hpp>
#include <hypertune/config/space_keys.hpp>
#include <hypertune/config/sweep_keys.hpp>
#include <hypertune/config/yaml.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0::command {

namespace json = boost::json;

namespace {

// The syntax of parse_duration() and parse_size().
constexpr const char* duration_pattern =
    R"(^ *([0-9.]+ *$|([0-9.]+ *d *)?([0-9.]+ *h *)?([0-9.]+ *m *)?([0-9.]+ *s *)?([0-9.]+ *ms *)?$))";
constexpr const char* size_pattern = R"(^ *[0-9.]+ *([kKmMgGtTpP]i?)?[bB]?$)";

json::value schema(const Shape& shape);

json::array strings(const std::vector<std::string>& words) {
  json::array all;
  for (const auto& word : words) all.emplace_back(word);
  return all;
}

void add_bounds(json::object& out, const Bounds& bounds) {
  const auto number = [](double x) {
    return x == std::trunc(x) && std::fabs(x) < 1e15 ? json::value(static_cast<std::int64_t>(x)) : json::value(x);
  };
  if (std::isfinite(bounds.least)) out[bounds.above_least ? "exclusiveMinimum" : "minimum"] = number(bounds.least);
  if (std::isfinite(bounds.most)) out[bounds.below_most ? "exclusiveMaximum" : "maximum"] = number(bounds.most);
}

// Adds bounds to `out`. If 0 has a special meaning, it is allowed in addition.
json::object bounded(json::object out, const Bounds& bounds) {
  const bool zero_apart = bounds.zero && (bounds.least > 0 || (bounds.least == 0 && bounds.above_least));
  if (!zero_apart) return add_bounds(out, bounds), out;
  json::object limits;
  add_bounds(limits, bounds);
  // The bounds apply to numbers only. For "90s" and "4GiB" the reader checks them.
  out["anyOf"] = json::array{json::object{{"const", 0}}, std::move(limits)};
  return out;
}

json::value word(const Shape& shape) {
  json::array words;
  for (const auto* list : {&shape.words, &shape.also})
    for (const auto& one : *list) {
      if (one == "True" || one == "False") continue;  // YAML reads them as true and false
      words.push_back(one == "true" ? json::value(true) : one == "false" ? json::value(false) : json::value(one));
    }
  return json::object{{"enum", std::move(words)}};
}

// A default value in YAML, converted to JSON.
json::value value_of(const Node& node) {
  if (node.is_list()) {
    json::array all;
    for (const auto& item : node.items()) all.push_back(value_of(item));
    return all;
  }
  if (node.is_map()) {
    json::object all;
    for (const auto& [name, value] : node.entries()) all[name] = value_of(value);
    return all;
  }
  if (node.is_null()) return nullptr;
  return std::visit([](const auto& value) { return json::value(value); }, node.scalar());
}

json::value described(const OptionInfo& info) {
  json::value made = schema(info.shape);
  json::object out = made.is_object() ? std::move(made.as_object()) : json::object();
  if (!info.text.empty()) out["description"] = info.text;
  if (!info.fallback.empty()) out["default"] = value_of(load_yaml_text(info.fallback, info.name));
  if (info.ignored) out["deprecated"] = true;
  return out;
}

void add_keys(json::object& out, const Keys& keys, bool type_is_told) {
  json::object properties;
  json::array needed;
  for (const auto& info : keys) {
    properties[info.name] = described(info);
    if (info.required && !(type_is_told && info.name == "type")) needed.emplace_back(info.name);
  }
  out["properties"] = std::move(properties);
  if (!needed.empty()) out["required"] = std::move(needed);
}

json::object map_by_type(const Shape& shape) {
  json::array types, rules;
  for (const auto& [type, keys] : shape.variants) types.emplace_back(type);
  const std::string& first = shape.variants.front().first;
  for (const auto& [type, keys] : shape.variants) {
    json::object own;
    add_keys(own, *keys, true);
    own["properties"].as_object()["type"].as_object().erase("default");
    own["additionalProperties"] = false;
    json::object when{{"properties", json::object{{"type", json::object{{"const", type}}}}}};
    if (shape.needs_type || type != first) when["required"] = json::array{"type"};
    rules.push_back(json::object{{"if", std::move(when)}, {"then", std::move(own)}});
  }
  json::object type{{"enum", std::move(types)}};
  json::object out{{"type", "object"}, {"properties", json::object{{"type", type}}}, {"allOf", std::move(rules)}};
  if (shape.needs_type)
    out["required"] = json::array{"type"};
  else
    out["properties"].as_object()["type"].as_object()["default"] = first;
  return out;
}

json::object map(const Shape& shape) {
  if (!shape.variants.empty()) return map_by_type(shape);
  json::object out{{"type", "object"}};
  add_keys(out, *shape.keys, false);
  out["additionalProperties"] = shape.parts.empty() ? json::value(false) : schema(shape.parts[0]);
  if (!shape.one_of.empty()) {
    json::array ways;
    for (const auto& names : shape.one_of) ways.push_back(json::object{{"required", strings(names)}});
    out["oneOf"] = std::move(ways);
  }
  if (shape.filled) out["minProperties"] = 1;
  return out;
}

json::value schema(const Shape& shape) {
  using Kind = Shape::Kind;
  const auto typed = [](auto... names) { return json::object{{"type", json::array{names...}}}; };
  json::value out;
  switch (shape.kind) {
    case Kind::any: return json::object();
    case Kind::boolean: out = json::object{{"type", "boolean"}}; break;
    case Kind::whole: out = bounded({{"type", "integer"}}, shape.bounds); break;
    case Kind::number: out = bounded({{"type", "number"}}, shape.bounds); break;
    case Kind::duration:
    case Kind::size:
      out = bounded(typed("string", "number"), shape.bounds);
      out.as_object()["pattern"] = shape.kind == Kind::size ? size_pattern : duration_pattern;
      break;
    case Kind::word: out = word(shape); break;
    case Kind::text:
      out = typed("string", "number", "boolean");  // unquoted text may look like a number
      if (!shape.pattern.empty()) out.as_object()["pattern"] = shape.pattern;
      break;
    case Kind::scalar: out = typed("string", "number", "boolean"); break;
    case Kind::list:
      out = json::object{{"type", "array"}, {"items", schema(shape.parts[0])}};
      if (shape.filled) out.as_object()["minItems"] = 1;
      break;
    case Kind::entries:
      out = json::object{{"type", "object"}, {"additionalProperties", schema(shape.parts[0])}};
      if (shape.filled) out.as_object()["minProperties"] = 1;
      break;
    case Kind::map: out = map(shape); break;
    case Kind::either: {
      json::array ways;
      for (const auto& part : shape.parts) ways.push_back(schema(part));
      out = json::object{{"anyOf", std::move(ways)}};
      break;
    }
    case Kind::space: return json::object{{"$ref", "#/$defs/space"}};
  }
  if (shape.empty) return json::object{{"anyOf", json::array{json::object{{"type", "null"}}, std::move(out)}}};
  return out;
}

json::object exactly(std::size_t n, const char* type) {
  return {{"type", "array"}, {"items", json::object{{"type", type}}}, {"minItems", n}, {"maxItems", n}};
}

// The value of a domain's key.
json::object domain_value(const detail::DomainWord& domain) {
  json::object out;
  if (!domain.items.empty()) {
    out = exactly(domain.size(), domain.whole ? "integer" : "number");
  } else if (domain.word == "constant") {
    out = schema(shape::scalar()).as_object();
  } else if (domain.word == "derived") {
    out = schema(shape::text()).as_object();
  } else if (domain.word == "boolean" || domain.word == "bool") {
    out = json::object{{"type", json::array{"array", "null"}}, {"items", json::object{{"type", "boolean"}}}};
  } else {
    out = json::object{{"type", "array"},
                       {"items", schema(domain.word == "discrete" ? shape::number() : shape::scalar())},
                       {"minItems", 1}};
  }
  out["description"] = std::string(domain.text);
  if (!domain.items.empty()) out["description"] = fmt::format("[{}]: {}", domain.items, domain.text);
  return out;
}

// A parameter is a value, a domain with further keys, or a group of parameters.
json::object space_definitions() {
  const json::value parameter = json::object{{"$ref", "#/$defs/parameter"}};
  json::array ways{schema(shape::scalar())};
  json::object words, group;
  const Keys& beside = detail::parameter_keys();
  for (const auto& domain : detail::domain_words()) {
    const std::string name(domain.word);
    json::object properties{{name, domain_value(domain)}};
    for (const auto& info : beside)
      if ((info.name != "quantum" || domain.quantum) && (info.name != "bounds" || domain.bounds))
        properties[info.name] = info.name == "bounds" ? json::value(exactly(2, "number")) : described(info);
    ways.push_back(json::object{{"type", "object"},
                                {"properties", std::move(properties)},
                                {"required", json::array{name}},
                                {"additionalProperties", false}});
    group[name] = json::object{{"type", "object"}, {"$ref", "#/$defs/parameter"}};  // a parameter named so
  }
  group["when"] = described(beside.front());
  ways.push_back(json::object{{"description", "a group: its parameters are called group.name"},
                              {"type", "object"},
                              {"properties", std::move(group)},
                              {"additionalProperties", parameter},
                              {"minProperties", 1}});
  const json::array rules{schema(shape::text()), schema(shape::list(shape::text()))};
  return {{"parameter", json::object{{"anyOf", std::move(ways)}}},
          {"space",
           json::object{{"type", "object"},
                        {"properties",
                         json::object{{"constraints",
                                       json::object{{"description",
                                                     "conditions between parameters, which every configuration meets"},
                                                    {"anyOf", rules}}}}},
                        {"additionalProperties", parameter},
                        {"minProperties", 1}}}};
}

}  // namespace

std::string schema_of(const std::string& kind) {
  const bool cluster = kind == "cluster";
  json::object out{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", fmt::format("hypertune {}", kind)},
      {"$comment", fmt::format("hypertune {}: written by hypertune schema {}", HYPERTUNE_VERSION_TEXT, kind)}};
  json::value root = schema(cluster ? cluster::cluster_shape() : sweep_shape(kind == "study"));
  for (auto& [name, value] : root.as_object()) out[name] = std::move(value);
  if (!cluster) out["$defs"] = space_definitions();
  return print_json(out) + "\n";
}

}  // namespace hypertune::inline v0::command
