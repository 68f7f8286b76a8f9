// --set key=value: one value of a YAML file, replaced from the command line.
#pragma once

#include <hypertune/config/yaml.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

/// `data` and its children, marked as coming from an option of the command line.
inline std::shared_ptr<const YamlData> from_option(const YamlData& data,
                                                   const std::shared_ptr<const std::string>& option) {
  auto copy = std::make_shared<YamlData>(data);
  copy->option = option;
  for (auto& item : copy->items) item = from_option(*item, option);
  return copy;
}

inline std::shared_ptr<const YamlData> overridden(const YamlData& data, std::string_view path, const YamlData& value) {
  const auto dot = path.find('.');
  const std::string key(path.substr(0, dot));
  auto copy = std::make_shared<YamlData>(data);
  if (copy->kind == YamlKind::null) copy->kind = YamlKind::map;
  if (copy->kind != YamlKind::map)
    fail(Errc::usage, "{}: '{}' goes into something that is no map", *value.option, path);
  auto at = std::find_if(copy->keys.begin(), copy->keys.end(), [&](const auto& k) { return k.first == key; });
  if (at == copy->keys.end()) {
    copy->keys.emplace_back(key, data.line);
    auto empty = std::make_shared<YamlData>();
    empty->option = value.option;
    copy->items.push_back(std::move(empty));
    at = std::prev(copy->keys.end());
  }
  auto& item = copy->items[static_cast<std::size_t>(at - copy->keys.begin())];
  if (dot == std::string_view::npos) {
    auto placed = std::make_shared<YamlData>(value);
    placed->line = at->second;
    item = std::move(placed);
  } else {
    item = overridden(*item, path.substr(dot + 1), value);
  }
  return copy;
}

}  // namespace detail

/// `root` with the value at `assignment` ("schedule.max_steps=27", the value in YAML) replaced. Error of kind `usage`
/// if the text is not an assignment, of kind `input` if the value is not YAML. Later complaints about the value name
/// `option` as its place:
///     --set schedule.max_steps=many: 'schedule.max_steps' must be a whole number, …
inline Node with_override(const Node& root, const std::string& assignment, std::string option = {}) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(Errc::usage, "--set takes key=value (schedule.max_steps=27), not '{}'", assignment);
  if (option.empty()) option = "--set " + (assignment.size() > 80 ? assignment.substr(0, equals) + "=…" : assignment);
  const Node value = load_yaml_text(assignment.substr(equals + 1), "--set " + assignment.substr(0, equals));
  const auto data = detail::from_option(value.data(), std::make_shared<const std::string>(std::move(option)));
  return root.replaced(detail::overridden(root.data(), std::string_view(assignment).substr(0, equals), *data));
}

}  // namespace hypertune::inline v0
