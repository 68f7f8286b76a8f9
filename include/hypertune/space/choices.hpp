// Domains of listed values: choice, ordinal, discrete, boolean, grid, constant; and derived ones.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/random.hpp>
#include <hypertune/space/domain.hpp>
#include <hypertune/space/point.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

/// The double with the shortest text of x: 0.1f becomes 0.1 and not 0.10000000149011612.
double shortest_double(float x);

/// The mistake in the options of a domain: a number that is not finite, or an option that is given twice.
std::string mistake_in(const std::vector<Value>& options);
std::string options_grammar(const std::string& word, const std::vector<Value>& options);
std::string wrong_number_of_names(std::size_t names, std::size_t options);
[[noreturn]] void refuse_derived(const std::string& value);

/// Converts x to one of the four plain types. A whole number above all of std::int64_t becomes the text of its digits.
template <class T>
  requires(std::is_arithmetic_v<T> || Text<T>)
Value to_value(const T& x) {
  if constexpr (std::same_as<T, bool>)
    return x;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == sizeof(std::int64_t) && std::is_unsigned_v<T>)
    return std::in_range<std::int64_t>(x) ? Value(static_cast<std::int64_t>(x)) : Value(std::to_string(x));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(x);
  else if constexpr (std::same_as<T, float>)
    return shortest_double(x);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(x);
  else
    return std::string(std::string_view(x));
}
inline Value to_value(Value x) { return x; }

/// The type in which a list element is stored: string literals become strings.
template <class T>
using Stored = std::conditional_t<std::same_as<std::decay_t<T>, const char*>, std::string, T>;

}  // namespace detail

/// One of several values of any equality-comparable type. Outside the program an option is represented by its name, if
/// it has one, else by its value if that is a number (up to 2^63 - 1) or a string, else by the text that fmt prints.
template <class T>
class Choices {
 public:
  using value_type = T;

  Choices(std::string_view word, DomainKind kind, std::vector<T> values, bool grid = false)
      : word_(word), values_(std::move(values)) {
    static_assert(std::equality_comparable<T>, "the options of a choice must be comparable by ==");
    info_ = {.kind = kind,
             .lower = 0,
             .upper = values_.empty() ? 0.0 : static_cast<double>(values_.size() - 1),
             .options = values_.size(),
             .grid = grid};
  }

  /// Names for the options, in the same order, for values that print badly or not at all.
  Choices names(std::vector<std::string> names) const {
    Choices result = *this;
    if (names.size() != values_.size()) result.problem_ = detail::wrong_number_of_names(names.size(), values_.size());
    result.names_ = std::move(names);
    return result;
  }

  const DomainInfo& info() const { return info_; }
  T value(double coordinate) const {
    return values_[static_cast<std::size_t>(std::clamp(coordinate, info_.lower, info_.upper))];
  }
  double coordinate(const T& value) const {
    const auto at = std::find(values_.begin(), values_.end(), value);
    return at == values_.end() ? inactive : static_cast<double>(at - values_.begin());
  }

  /// The option as represented outside the program.
  Value outside(std::size_t option) const {
    const T value = values_[option];
    if (option < names_.size()) return names_[option];
    if constexpr (std::is_arithmetic_v<T> || detail::Text<T> || std::same_as<T, Value>)
      return detail::to_value(value);
    else if constexpr (fmt::is_formattable<T>::value)
      return detail::format("{}", value);
    else
      return std::string();
  }

  std::string problem() const {
    if (!problem_.empty()) return problem_;
    if (values_.empty()) return "there are no options: give at least one";
    if constexpr (!(std::is_arithmetic_v<T> || detail::Text<T> || std::same_as<T, Value> ||
                    fmt::is_formattable<T>::value))
      if (names_.empty()) return "its options are of a type that fmt cannot print: give them names with .names({...})";
    return detail::mistake_in(all());
  }

  std::string grammar() const { return detail::options_grammar(word_, all()); }

 private:
  std::vector<Value> all() const {
    std::vector<Value> values;
    for (std::size_t i = 0; i < values_.size(); ++i) values.push_back(outside(i));
    return values;
  }

  std::string word_;
  std::vector<T> values_;
  std::vector<std::string> names_;
  DomainInfo info_;
  std::string problem_;
};

/// One of several values without order: `choice<std::string>({"sgd", "adam"})`, `choice({16, 32, 64})`.
template <class T>
Choices<T> choice(std::vector<T> values) {
  return {"choice", DomainKind::categorical, std::move(values)};
}
template <class T>
Choices<detail::Stored<T>> choice(std::initializer_list<T> values) {
  return choice(std::vector<detail::Stored<T>>(values.begin(), values.end()));
}

/// One of several values in a meaningful order: `ordinal<std::string>({"small", "medium", "large"})`.
template <class T>
Choices<T> ordinal(std::vector<T> values) {
  return {"ordinal", DomainKind::ordinal, std::move(values)};
}
template <class T>
Choices<detail::Stored<T>> ordinal(std::initializer_list<T> values) {
  return ordinal(std::vector<detail::Stored<T>>(values.begin(), values.end()));
}

/// One of several numbers, sorted in ascending order: `discrete({0.1, 0.5, 2.0})`.
template <class T>
  requires std::is_arithmetic_v<T>
Choices<T> discrete(std::vector<T> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return {"discrete", DomainKind::ordinal, std::move(numbers)};
}
template <class T>
  requires std::is_arithmetic_v<T>
Choices<T> discrete(std::initializer_list<T> numbers) {
  return discrete(std::vector<T>(numbers));
}

/// true or false.
Choices<bool> boolean();

/// Several values, each of which is to be tried; several grids form all combinations. Can be mixed with sampled
/// dimensions: each combination then gets its own sample of those. A grid of ascending numbers is an ordinal dimension.
template <class T>
Choices<T> grid(std::vector<T> values) {
  auto kind = DomainKind::categorical;
  if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>)
    if (std::is_sorted(values.begin(), values.end())) kind = DomainKind::ordinal;
  return {"grid", kind, std::move(values), true};
}
template <class T>
Choices<detail::Stored<T>> grid(std::initializer_list<T> values) {
  return grid(std::vector<detail::Stored<T>>(values.begin(), values.end()));
}

/// One value.
template <class T>
Choices<detail::Stored<T>> constant(T value) {
  std::vector<detail::Stored<T>> values;
  values.emplace_back(std::move(value));
  return {"constant", DomainKind::constant, std::move(values)};
}

/// A number computed from the parameters drawn before it and, optionally, from random numbers: see derived().
template <class F>
class Derived {
  template <class G>
  static auto result_of() {
    if constexpr (std::is_invocable_v<const G&, const Params&, Rng&>)
      return std::type_identity<std::invoke_result_t<const G&, const Params&, Rng&>>();
    else if constexpr (std::is_invocable_v<const G&, const Params&>)
      return std::type_identity<std::invoke_result_t<const G&, const Params&>>();
    else
      return std::type_identity<void>();
  }

 public:
  using value_type = std::remove_cvref_t<typename decltype(result_of<F>())::type>;
  static_assert(!std::is_void_v<value_type>,
                "derived: the callable must take (const Params&, Rng&) or (const Params&)");
  static_assert(std::is_arithmetic_v<value_type>, "derived: the callable must return a number or a bool");

  /// Whether the value follows from the earlier parameters alone.
  static constexpr bool formula = !std::is_invocable_v<const F&, const Params&, Rng&>;

  explicit Derived(F function) : function_(std::move(function)) {}

  DomainInfo info() const {
    return {.kind = DomainKind::derived,
            .lower = -std::numeric_limits<double>::infinity(),
            .upper = std::numeric_limits<double>::infinity()};
  }
  value_type value(double coordinate) const { return static_cast<value_type>(coordinate); }
  double coordinate(value_type value) const { return static_cast<double>(value); }
  std::string grammar() const { return "derived: in the program"; }

  double draw(const Params& earlier, Rng& rng) const {
    if constexpr (formula)
      return exact(function_(earlier));
    else
      return exact(function_(earlier, rng));
  }

 private:
  static double exact(value_type value) {
    if constexpr (std::is_integral_v<value_type> && sizeof(value_type) == sizeof(std::int64_t))
      if (static_cast<value_type>(std::clamp<double>(static_cast<double>(value), -0x1p53, 0x1p53)) != value)
        detail::refuse_derived(std::to_string(value));
    return static_cast<double>(value);
  }

  F function_;
};

/// A dependent draw: `derived([](const Params& p, Rng& rng) { return p.get<double>("low") + uniform01(rng); })`. The
/// callable sees the active parameters declared before this one; it must be safe to call from several threads.
template <class F>
Derived<F> derived(F function) {
  return Derived<F>(std::move(function));
}

}  // namespace hypertune::inline v0
