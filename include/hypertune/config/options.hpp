// Reads described options (option.hpp) from YAML, and lists them for the reference.
#pragma once

#include <hypertune/config/option_forms.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/option.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline std::string joined(const std::vector<std::string_view>& words) {
  std::string all;
  for (const auto word : words) all += (all.empty() ? "" : ", ") + std::string(word);
  return all;
}

/// As in YAML: "90s", "5m", "1h".
inline std::string written_duration(Seconds seconds) {
  for (const auto& [unit, name] : {std::pair(3600.0, 'h'), std::pair(60.0, 'm')})
    if (seconds >= unit && std::fmod(seconds, unit) == 0) return fmt::format("{}{}", seconds / unit, name);
  return fmt::format("{}s", seconds);
}

/// A visitor of option descriptions that lists them as text and shapes.
struct OptionLister {
  std::vector<OptionInfo>& infos;

  template <class M>
  void operator()(const char* name, const M& value, const Bounds& bounds, const char* text) const {
    if constexpr (requires { value.has_value(); }) {
      (*this)(name, value.value_or(typename M::value_type{}), value ? bounds : bounds.without_default(), text);
    } else {
      const bool seconds = bounds.unit == Bounds::Unit::seconds, bytes = bounds.unit == Bounds::Unit::bytes;
      const char* type = seconds ? "duration" : bytes ? "size" : std::integral<M> ? "whole number" : "number";
      infos.push_back({name, fmt::format("{}, {}", type, bounds.text()),
                       bounds.no_default ? ""
                       : seconds         ? written_duration(static_cast<Seconds>(value))
                                         : fmt::format("{}", value),
                       text,
                       seconds            ? shape::duration(bounds)
                       : bytes            ? shape::size(bounds)
                       : std::integral<M> ? shape::whole(bounds)
                                          : shape::number(bounds)});
    }
  }
  template <class M>
  void operator()(const char* name, const M& value, const char* text) const {
    if constexpr (std::same_as<M, bool>)
      infos.push_back({name, "true, false", value ? "true" : "false", text, shape::boolean()});
    else if constexpr (std::same_as<M, std::vector<std::filesystem::path>>)
      infos.push_back({name, "list of paths", "", text, shape::list(shape::text())});
    else if constexpr (std::same_as<M, std::vector<std::string>>)
      infos.push_back({name, "word or list", "", text, shape::texts()});
    else if constexpr (std::derived_from<M, std::map<std::string, double>>)
      infos.push_back({name, "map", "", text, shape::entries(shape::number(between(0, 1e9)))});
    else if constexpr (requires { OptionForm<M>::shape(); })
      infos.push_back({name, {}, OptionForm<M>::fallback(value), text, OptionForm<M>::shape()});
    else
      infos.push_back({name, std::same_as<M, std::string> ? "text" : "path", std::string(value), text, shape::text()});
  }
  template <FormTag F>
  void operator()(const char* name, const auto& value, const F& form, const char* text) const {
    infos.push_back({name, {}, OptionForm<F>::fallback(value), text, OptionForm<F>::shape(form)});
  }
  void operator()(const char* name, const auto& value, std::initializer_list<const char*> words,
                  const char* text) const {
    std::string all;
    for (const char* word : words) all += fmt::format("{}`{}`", all.empty() ? "" : ", ", word);
    infos.push_back(
        {name, all, words.begin()[static_cast<std::size_t>(value)], text, shape::word({words.begin(), words.end()})});
  }
};

/// A visitor of option descriptions that reads their values from a map.
struct OptionReader {
  const Node& node;

  template <class M>
  void operator()(const char* name, M& value, const Bounds& bounds, const char*) const {
    const auto given = node.find(name);
    if (!given) return;
    if constexpr (requires { value.has_value(); })
      (*this)(name, value.emplace(), bounds, "");
    else
      value = bounds.unit == Bounds::Unit::seconds ? static_cast<M>(given->duration())
              : bounds.unit == Bounds::Unit::bytes ? static_cast<M>(given->bytes())
                                                   : given->as<M>();
  }
  template <class M>
  void operator()(const char* name, M& value, const char*) const {
    const auto given = node.find(name);
    if (!given) return;
    if constexpr (std::same_as<M, std::vector<std::string>>)
      value = given->texts();
    else if constexpr (std::same_as<M, std::vector<std::filesystem::path>>)
      for (const Node& item : given->items()) value.emplace_back(item.as<std::string>());
    else if constexpr (std::derived_from<M, std::map<std::string, double>>)
      for (const auto& [each, number] : given->entries()) value[each] = amount(number);
    else if constexpr (std::same_as<M, std::filesystem::path>)
      value = given->as<std::string>();
    else if constexpr (requires { OptionForm<M>::shape(); })
      OptionForm<M>::read(*given, value);
    else
      value = given->as<M>();
  }
  template <FormTag F>
  void operator()(const char* name, auto& value, const F& form, const char*) const {
    if (const auto given = node.find(name)) OptionForm<F>::read(*given, value, form);
  }
  template <class M>
  void operator()(const char* name, M& value, std::initializer_list<const char*> words, const char*) const {
    const auto given = node.find(name);
    if (!given) return;
    const auto word = given->as<std::string>();
    const std::vector<std::string_view> known(words.begin(), words.end());
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end()) {
      const auto near = nearest(word, known);
      given->fail("'{}' cannot be '{}'{}; there are {}", given->path(), word,
                  near.empty() ? "" : ": did you mean '" + near + "'?", joined(known));
    }
    value = static_cast<M>(found - known.begin());
  }
};

}  // namespace detail

/// The described options of these objects, with their values as the defaults.
template <class... T>
std::vector<OptionInfo> options_of(const T&... defaults) {
  std::vector<OptionInfo> infos;
  const auto add = [&]<class U>(const U& options) {
    if constexpr (Described<U>) U::describe(options, detail::OptionLister{infos});
  };
  (add(defaults), ...);
  return infos;
}

/// Reads the options that a map has, and ignores its other keys. Does nothing if `node` is not a map.
template <class T>
void read_known_options(const Node& node, T& options) {
  if constexpr (Described<T>)
    if (node.is_map()) T::describe(options, detail::OptionReader{node});
}

/// Fails at a key that is neither one of these options nor in `others`.
template <class... T>
void check_option_keys(const Node& node, std::vector<std::string_view> others, const T&... options) {
  auto all = options_of(options...);
  for (const auto name : others) all.push_back(key(std::string(name), shape::any(), ""));
  check_keys(node, all);
}

/// Reads the options from a map that may have no keys but these and `others`. The values are not checked against each
/// other: call check_options() for that, within checked(), which adds the line to its error.
template <class... T>
void read_options(const Node& node, std::vector<std::string_view> others, T&... options) {
  if (!node.is_map()) return;
  check_option_keys(node, std::move(others), options...);
  (read_known_options(node, options), ...);
}

/// Reads the options from a map that may have no keys but those of `keys`, whose single values must be of their shapes.
template <class T>
T options_from(const Node& node, const Keys& keys = options_of(T())) {
  T options;
  check_values(node, keys);
  read_known_options(node, options);
  return options;
}

namespace detail {

/// Options within options are a map of theirs.
template <Described M>
struct OptionForm<M> {
  static Shape shape() { return shape::map(options_of(M())); }
  static std::string fallback(const M&) { return {}; }
  static void read(const Node& node, M& value) {
    value = options_from<M>(node);
    checked(node, [&] { return check_options(value), 0; });
  }
};

}  // namespace detail

}  // namespace hypertune::inline v0
