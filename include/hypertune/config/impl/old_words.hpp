// Puts today's words in the place of those of earlier versions.
#pragma once

#include <hypertune/config/shape_check.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

class WordUpdate {
 public:
  using Data = std::shared_ptr<const YamlData>;

  WordUpdate(const Node& root, const SayOldWord& say) : root_(root), say_(say) {}

  Data operator()(const Data& data, const Shape& shape, const std::string& path) const {
    const Node node(data, file_, path);
    if (shape.kind == Shape::Kind::either) {
      for (const auto& part : shape.parts)
        if (fits(node, part)) return (*this)(data, part, path);
      return data;
    }
    const bool list = shape.kind == Shape::Kind::list && node.is_list();
    const bool entries = shape.kind == Shape::Kind::entries && node.is_map();
    if (list || entries) return children(data, path, [&](std::size_t) { return &shape.parts[0]; });
    if (shape.kind != Shape::Kind::map || !node.is_map()) return data;
    const Keys* keys = keys_of(node, shape);
    if (keys == nullptr) return data;
    const Data renamed = with_keys(data, *keys, shape.parts.empty(), path);
    return children(renamed, path, [&](std::size_t i) -> const Shape* {
      for (const auto& key : *keys)
        if (key.name == renamed->keys[i].first) return &key.shape;
      return nullptr;
    });
  }

 private:
  static std::string below(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }
  void say(const YamlData& value, int line, const std::string& before, const std::string& now) const {
    if (say_) say_(fmt::format("{}: '{}' is now '{}'", place(value, line), before, now));
  }
  std::string place(const YamlData& value, int line) const {
    return value.option ? *value.option : fmt::format("{}:{}", root_.file(), line);
  }

  /// `data`, a map, with today's keys and values. `only`: other keys than `keys` are wrong.
  Data with_keys(const Data& data, const Keys& keys, bool only, const std::string& path) const {
    std::shared_ptr<YamlData> copy;
    const auto known = names_of(keys);
    const auto change = [&]() -> YamlData& {
      if (!copy) copy = std::make_shared<YamlData>(*data);
      return *copy;
    };
    for (std::size_t i = 0; i < data->keys.size(); ++i) {
      std::string key = data->keys[i].first;
      const YamlData& value = *data->items[i];
      const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
      const auto* old = only && !is_known ? old_key(key, known) : nullptr;
      if (old != nullptr && old->taken) {
        say(value, data->keys[i].second, below(path, key), below(path, std::string(old->now)));
        key = old->now;
        change().keys[i].first = key;
      }
      const auto* word = value.kind == YamlKind::scalar ? old_value(key, value.text) : nullptr;
      if (word == nullptr) continue;
      say(value, data->keys[i].second, below(path, key) + ": " + value.text,
          below(path, key) + ": " + std::string(word->now));
      auto present = std::make_shared<YamlData>(value);
      present->text = word->now;
      change().items[i] = std::move(present);
    }
    if (!copy) return data;
    keep_one_of_each(*copy, *data, path);
    return copy;
  }

  /// Where a key is there by its old and by its new name, one of them from the command line, that one counts.
  void keep_one_of_each(YamlData& map, const YamlData& before, const std::string& path) const {
    std::vector<bool> drop(map.keys.size());
    for (std::size_t i = 0; i < map.keys.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (map.keys[i].first != map.keys[j].first) continue;
        const bool first = map.items[i]->option == nullptr;
        if (first == (map.items[j]->option == nullptr)) {
          const std::size_t old = before.keys[i].first == map.keys[i].first ? j : i;
          throw Error(Errc::input, fmt::format("{}: '{}' is now '{}', which is given, too: remove one of the two",
                                               place(*map.items[old], map.keys[old].second),
                                               below(path, before.keys[old].first), below(path, map.keys[old].first)));
        }
        drop[first ? i : j] = true;
      }
    for (std::size_t i = drop.size(); i-- > 0;) {
      if (!drop[i]) continue;
      map.keys.erase(map.keys.begin() + static_cast<std::ptrdiff_t>(i));
      map.items.erase(map.items.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// `data` with its children updated. `shape_of(i)`: of the i-th; null: it stays.
  template <class ShapeOf>
  Data children(const Data& data, const std::string& path, const ShapeOf& shape_of) const {
    std::shared_ptr<YamlData> copy;
    for (std::size_t i = 0; i < data->items.size(); ++i) {
      const Shape* shape = shape_of(i);
      if (shape == nullptr) continue;
      const std::string name =
          data->kind == YamlKind::list ? fmt::format("{}[{}]", path, i) : below(path, data->keys[i].first);
      auto item = (*this)(data->items[i], *shape, name);
      if (item == data->items[i]) continue;
      if (!copy) copy = std::make_shared<YamlData>(*data);
      copy->items[i] = std::move(item);
    }
    return copy ? copy : data;
  }

  const Node& root_;
  const SayOldWord& say_;
  std::shared_ptr<const std::string> file_ = std::make_shared<const std::string>(root_.file());
};

}  // namespace detail

Node with_present_words(const Node& root, const Shape& shape, const SayOldWord& say) {
  return root.replaced(detail::WordUpdate(root, say)(std::make_shared<const detail::YamlData>(root.data()), shape, ""));
}

}  // namespace hypertune::inline v0
