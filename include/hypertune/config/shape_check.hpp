// Checks YAML against the shapes of shape.hpp: the readers key by key, `hypertune check` a whole file.
#pragma once

#include <hypertune/config/shape.hpp>
#include <hypertune/config/yaml.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

/// A number with its unit, for messages: "1 s", "1 h", "4096".
inline std::string in_words(double x, Bounds::Unit unit) {
  if (unit != Bounds::Unit::seconds) return fmt::format("{}", x);
  for (const auto& [size, name] : {std::pair(86400.0, 'd'), std::pair(3600.0, 'h'), std::pair(60.0, 'm')})
    if (x >= size && std::fmod(x, size) == 0) return fmt::format("{} {}", x / size, name);
  return fmt::format("{} s", x);
}

/// Fails if the bounds do not allow the number.
inline void check_bounds(const Node& node, double value, const Bounds& bounds) {
  const bool any = std::isinf(bounds.least) && std::isinf(bounds.most);
  if (any || bounds.allow(value)) return;
  const auto words = [&](double x) { return in_words(x, bounds.unit); };
  const std::string zero = bounds.zero ? "0, or " : "";
  if (bounds.most < std::numeric_limits<double>::infinity() && !bounds.above_least && !bounds.below_most)
    node.fail("'{}' must be {}{} to {}, not {}", node.path(), zero, words(bounds.least), words(bounds.most),
              node.written());
  std::string text = bounds.above_least ? "more than " + words(bounds.least) : words(bounds.least) + " or more";
  if (bounds.most < std::numeric_limits<double>::infinity())
    text += fmt::format(", and {} {}", bounds.below_most ? "below" : "at most", words(bounds.most));
  node.fail("'{}' must be {}{}, not {}", node.path(), zero, text, node.written());
}

inline std::string one_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

inline void check_word(const Node& node, const Shape& shape) {
  const auto word = node.as<std::string>();
  auto known = shape.words;
  known.insert(known.end(), shape.also.begin(), shape.also.end());
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const auto meant = nearest(word, known);
  node.fail("'{}' must be {}, not '{}'{}", node.path(), one_of(shape.words), word,
            meant.empty() ? "" : fmt::format(": did you mean '{}'?", meant));
}

inline std::vector<std::string_view> names_of(const Keys& keys) {
  std::vector<std::string_view> names;
  for (const auto& key : keys) names.emplace_back(key.name);
  return names;
}

/// Fails if a value is not of the shape. Checks the value itself, not its children.
inline void expect_shape(const Node& node, const Shape& shape) {
  using Kind = Shape::Kind;
  if (node.is_null() && shape.empty) return;
  switch (shape.kind) {
    case Kind::boolean: node.as<bool>(); return;
    case Kind::whole: {
      const bool above_int64 = shape.bounds.least >= 0 && node.is_scalar() && !node.written().starts_with('-');
      const double value = above_int64 ? static_cast<double>(node.as<std::uint64_t>())  // a seed
                                       : static_cast<double>(node.as<std::int64_t>());
      return check_bounds(node, value, shape.bounds);
    }
    case Kind::number: check_bounds(node, node.as<double>(), shape.bounds); return;
    case Kind::duration: check_bounds(node, node.duration(), shape.bounds); return;
    case Kind::size: check_bounds(node, static_cast<double>(node.bytes()), shape.bounds); return;
    case Kind::word: check_word(node, shape); return;
    case Kind::text: node.as<std::string>(); return;
    case Kind::scalar: node.scalar(); return;
    case Kind::either:  // numbers only: the readers have better messages for the other cases
      for (const auto& part : shape.parts)
        if (node.is_scalar() && (part.kind == Kind::whole || part.kind == Kind::number)) expect_shape(node, part);
      return;
    case Kind::any:
    case Kind::list:
    case Kind::map:
    case Kind::entries:
    case Kind::space: return;
  }
}

}  // namespace detail

/// Fails if a map has a key that is not one of these.
inline void check_keys(const Node& node, const Keys& keys) {
  if (const auto* watch = detail::key_watch())
    for (const auto& key : keys)
      if (!key.fallback.empty()) watch->fallback(node.path(), key.name, key.fallback);
  node.only(detail::names_of(keys));
}

/// As check_keys(). Also fails if a single value is not of its key's shape; lists and maps are left to their own
/// readers.
inline void check_values(const Node& node, const Keys& keys) {
  check_keys(node, keys);
  for (const auto& [name, value] : node.entries())
    for (const auto& key : keys)
      if (key.name == name) detail::expect_shape(value, key.shape);
}

namespace detail {

/// Whether a value is of the kind of the shape, so that it is the one meant of a Kind::either.
inline bool fits(const Node& node, const Shape& shape) {
  using Kind = Shape::Kind;
  switch (shape.kind) {
    case Kind::any: return true;
    case Kind::list: return node.is_list();
    case Kind::map:
    case Kind::entries:
    case Kind::space: return node.is_map();
    default: return node.is_scalar();
  }
}

/// The keys that a map of this shape may have; null if its `type` is none of the shape's variants.
inline const Keys* keys_of(const Node& node, const Shape& shape) {
  if (shape.variants.empty()) return shape.keys.get();
  const auto given = node.find("type");
  const auto type = !given ? shape.variants.front().first : given->is_scalar() ? given->as<std::string>() : "";
  for (const auto& [name, keys] : shape.variants)
    if (name == type) return keys.get();
  return nullptr;
}

/// Checks a value with all its children and calls `say` with each error.
class ShapeCheck {
 public:
  explicit ShapeCheck(std::function<void(const Error&)> say) : say_(std::move(say)) {}

  void operator()(const Node& node, const Shape& shape) const {
    using Kind = Shape::Kind;
    if (node.is_null() && shape.empty) return;
    if (shape.kind == Kind::either) {
      for (const auto& part : shape.parts)
        if (fits(node, part)) return (*this)(node, part);
      return complain([&] { node.fail("{} cannot be {}", node.title(), node.kind_text()); });
    }
    if (shape.kind == Kind::list) {
      complain([&] {
        for (const auto& item : node.items()) (*this)(item, shape.parts[0]);
        if (shape.filled && node.size() == 0) node.fail("{} is empty", node.title());
      });
    } else if (shape.kind == Kind::entries) {
      complain([&] {
        for (const auto& [name, value] : node.entries()) (*this)(value, shape.parts[0]);
        if (shape.filled && node.size() == 0) node.fail("{} is empty", node.title());
      });
    } else if (shape.kind == Kind::map) {
      complain([&] { map(node, shape); });
    } else {
      complain([&] { expect_shape(node, shape); });
    }
  }

 private:
  template <class Look>
  void complain(Look&& look) const {
    try {
      look();
    } catch (const Error& error) { say_(error); }
  }

  void map(const Node& node, const Shape& shape) const {
    if (!shape.variants.empty()) {
      const auto given = node.find("type");
      if (given) given->as<std::string>();
      if (!given && shape.needs_type) node["type"];
    }
    const Keys* keys = keys_of(node, shape);
    if (keys == nullptr) return;  // left to the reader
    for (const auto& [name, value] : node.entries()) {
      const auto key =
          std::find_if(keys->begin(), keys->end(), [&, &name = name](const auto& k) { return k.name == name; });
      if (key == keys->end() && !shape.parts.empty())
        (*this)(value, shape.parts[0]);
      else if (key == keys->end())
        complain([&, &name = name] { node.refuse_key(name, names_of(*keys)); });
      else
        (*this)(value, key->shape);
    }
    for (const auto& key : *keys)
      if (key.required) complain([&] { node[key.name]; });
    if (shape.filled && node.size() == 0) node.fail("{} is empty", node.title());
  }

  std::function<void(const Error&)> say_;
};

}  // namespace detail

using SayOldWord = std::function<void(const std::string&)>;

/// `root` with today's words in place of those of earlier versions that still mean the same. `say`, if it is not empty,
/// gets a line for each: "sweep.yaml:3: 'hang_timeout' is now 'hang_timeout'".
Node with_present_words(const Node& root, const Shape& shape, const SayOldWord& say = {});

/// Errors of a file, one line each, which start with their places. Each value gets only one, except for missing keys: of
/// values on one line, where one is within the other, the first that is wrong.
class Complaints {
 public:
  void add(const Error& error) {
    const auto* placed = dynamic_cast<const detail::PlacedError*>(&error);
    add(error.what(), placed == nullptr ? std::nullopt : std::optional(placed->path()));
  }
  /// `path`: of the value; nullopt: another complaint of the line may be about the same.
  void add(const std::string& text, const std::optional<std::string>& path = std::nullopt) {
    const auto place = [](std::string_view whole) { return whole.substr(0, whole.find(": ")); };
    const bool missing = text.find(" has no '") != std::string::npos ||
                         place(text).find(':') == std::string_view::npos;  // … or has no line
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i] == text || (!missing && place(lines_[i]) == place(text) && related(paths_[i], path))) return;
    lines_.push_back(text);
    paths_.push_back(path);
  }

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  using Path = std::optional<std::string>;
  static bool related(const Path& a, const Path& b) {
    const auto within = [](std::string_view outer, std::string_view inner) {
      return inner.starts_with(outer) &&
             (inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[');
    };
    if (!a || !b) return true;
    if (a->empty() || b->empty()) return *a == *b;  // the file's own keys
    return within(*a, *b) || within(*b, *a);
  }

  std::vector<std::string> lines_;
  std::vector<Path> paths_;
};

/// Adds all complaints about the shape of a value and its children, in the order of the file.
inline void add_complaints_about(Complaints& all, const Node& node, const Shape& shape) {
  detail::ShapeCheck([&](const Error& error) { all.add(error); })(node, shape);
}

/// The same alone, one line each.
inline std::vector<std::string> complaints_about(const Node& node, const Shape& shape) {
  std::vector<std::string> all;
  detail::ShapeCheck([&](const Error& error) { all.emplace_back(error.what()); })(node, shape);
  return all;
}

}  // namespace hypertune::inline v0
