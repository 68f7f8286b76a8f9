// The keys that a file may have: each is defined once, with its shape, default and meaning. The readers validate files
// by these tables, the tests compare docs/ with them, and `hypertune schema` prints them for editors.
#pragma once

#include <hypertune/option.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct OptionInfo;
using Keys = std::vector<OptionInfo>;

/// The values that a key may have.
struct Shape {
  enum class Kind : std::uint8_t {
    any,
    boolean,
    whole,     ///< a whole number within `bounds`
    number,    ///< a number within `bounds`
    duration,  ///< "90s", "1h30m", or seconds
    size,      ///< "500MB", "4GiB", or bytes
    word,      ///< one of `words`
    text,
    scalar,   ///< a text, a number, true or false
    list,     ///< of `parts[0]`
    map,      ///< with `keys`, or those of one of `variants`; other keys are allowed if there is `parts[0]`
    entries,  ///< a map with arbitrary keys and values of `parts[0]`
    either,   ///< one of `parts`, at most one of which is a single value, one a list and one a map
    space,    ///< the value of `space:`, which has its own grammar
  };
  Kind kind = Kind::any;
  Bounds bounds = {};
  std::vector<std::string> words = {};
  std::vector<std::string> also = {};  ///< further words that are accepted but not documented
  std::string pattern = {};            ///< of a text: a regular expression (ECMA 262) by which editors validate it
  std::vector<Shape> parts = {};
  std::shared_ptr<const Keys> keys = {};
  /// Keys by the value of the key `type`. Without `type`, the first variant is meant.
  std::vector<std::pair<std::string, std::shared_ptr<const Keys>>> variants = {};
  std::vector<std::vector<std::string>> one_of = {};  ///< of a map: exactly one of these sets of keys must be present
  bool needs_type = false;                            ///< with `variants`: `type` is required
  bool filled = false;                                ///< a list or a map may not be empty
  bool empty = false;                                 ///< the key may have no value
};

/// One key of a map, for its reader and for the reference.
struct OptionInfo {
  std::string name;
  std::string type;      ///< of described options (option.hpp): "whole number, at least 1"
  std::string fallback;  ///< the default as written in a file; empty if there is none, or none that can be written
  std::string text;      ///< its meaning
  Shape shape = {};
  bool required = false;
  bool ignored = false;  ///< known from other programs, has no effect here
};

/// Functions that make shapes.
namespace shape {

using Kind = Shape::Kind;

inline Shape any() { return {}; }
inline Shape boolean() { return {.kind = Kind::boolean}; }
inline Shape whole(Bounds bounds = {}) { return {.kind = Kind::whole, .bounds = bounds}; }
inline Shape number(Bounds bounds = {}) { return {.kind = Kind::number, .bounds = bounds}; }
inline Shape duration(Bounds bounds = at_least(0)) {
  return {.kind = Kind::duration, .bounds = bounds.in(Bounds::Unit::seconds)};
}
inline Shape size(Bounds bounds = at_least(0)) {
  return {.kind = Kind::size, .bounds = bounds.in(Bounds::Unit::bytes)};
}
inline Shape word(std::vector<std::string> words, std::vector<std::string> also = {}) {
  return {.kind = Kind::word, .words = std::move(words), .also = std::move(also)};
}
inline Shape text(std::string pattern = {}) { return {.kind = Kind::text, .pattern = std::move(pattern)}; }
inline Shape scalar() { return {.kind = Kind::scalar}; }
inline Shape list(Shape of) { return {.kind = Kind::list, .parts = {std::move(of)}}; }
inline Shape map(Keys keys) { return {.kind = Kind::map, .keys = std::make_shared<const Keys>(std::move(keys))}; }
inline Shape entries(Shape of) { return {.kind = Kind::entries, .parts = {std::move(of)}}; }
inline Shape either(std::vector<Shape> parts) { return {.kind = Kind::either, .parts = std::move(parts)}; }
inline Shape texts() { return either({text(), list(text())}); }
inline Shape variants(std::vector<std::pair<std::string, Keys>> of, bool needs_type) {
  Shape shape{.kind = Kind::map, .needs_type = needs_type};
  for (auto& [type, keys] : of)
    shape.variants.emplace_back(std::move(type), std::make_shared<const Keys>(std::move(keys)));
  return shape;
}
inline Shape filled(Shape shape) {
  shape.filled = true;
  return shape;
}
inline Shape or_empty(Shape shape) {
  shape.empty = true;
  return shape;
}

}  // namespace shape

/// A key of a table. `fallback`: its default as written in a file.
inline OptionInfo key(std::string name, Shape shape, std::string text, std::string fallback = {}) {
  return {std::move(name), {}, std::move(fallback), std::move(text), std::move(shape)};
}
inline OptionInfo required(OptionInfo info) {
  info.required = true;
  return info;
}
/// Adds keys that are known from other programs and have no effect here.
inline void ignore_keys(Keys& keys, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    keys.push_back(key(name, shape::any(), "known from Ray, and ignored"));
    keys.back().ignored = true;
  }
}

/// The keys of several tables, in this order.
template <class... More>
Keys joined(Keys first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

}  // namespace hypertune::inline v0
