// The values of one configuration outside the program: by name, of four plain types.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>

#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// The value of a parameter outside the program (YAML, JSON, a command line).
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// Shortest text that reads back as the same value, of the same type: 1 is a whole number, 1.0 a real one. Strings are
/// not quoted.
std::string to_string(const Value& value);

namespace detail {

/// The shortest text of a real number that cannot be mistaken for a whole one: "1.0", "0.5", "1e+20".
std::string real_text(double value);

/// The order of two numbers, exactly, whatever their types are: 2^53 + 1 is above 2^53. Unordered if one of the values
/// is no number, or NaN.
std::partial_ordering compare_numbers(const Value& a, const Value& b);

/// Throws the Error of a parameter that is absent (nullptr), or whose value is not what was asked for.
[[noreturn]] void refuse_parameter(std::string_view name, const Value* value, const char* why);

}  // namespace detail

/// Parameters by name, in the order of the space. A conditional parameter that is not active is absent.
class Params {
 public:
  using Entry = std::pair<std::string, Value>;

  // Defined once, so that not each file that has such a value compiles how a list of variants is copied.
  Params() noexcept;
  Params(std::initializer_list<Entry> entries);
  Params(const Params& other);
  Params(Params&& other) noexcept;
  Params& operator=(const Params& other);
  Params& operator=(Params&& other) noexcept;
  ~Params();

  const Value* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The value of a parameter as T (an arithmetic type or std::string). Numbers are converted if nothing is lost. Any
  /// other type, or an absent parameter, is an Error of kind `usage` that names the parameter.
  template <class T>
  T get(std::string_view name) const;

  /// As `get`, but `fallback` if the parameter is absent.
  template <class T>
  T get(std::string_view name, T fallback) const {
    return contains(name) ? get<T>(name) : std::move(fallback);
  }

  void set(std::string name, Value value);

  /// Appends a parameter whose name is known to be new.
  void add(std::string name, Value value);
  void reserve(std::size_t n);

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  friend bool operator==(const Params& a, const Params& b);

 private:
  std::vector<Entry> entries_;
};

namespace detail {

/// `value` as a T, if T can represent it exactly. Avoids conversions with undefined results.
template <class T, class V>
std::optional<T> converted_exactly(V value) {
  static_assert(std::is_same_v<V, std::int64_t> || std::is_same_v<V, double>);
  // The smallest power of two that the integer type cannot represent; a double represents it exactly.
  [[maybe_unused]] const auto end = [](int digits) { return std::ldexp(1.0, digits); };
  if constexpr (std::is_integral_v<T> && std::is_integral_v<V>) {
    const bool low =
        value < 0 && (std::is_unsigned_v<T> ||
                      value < static_cast<std::int64_t>(std::is_signed_v<T> ? std::numeric_limits<T>::min() : 0));
    const bool high =
        value > 0 && static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    if (low || high) return std::nullopt;
    return static_cast<T>(value);
  } else if constexpr (std::is_integral_v<T>) {
    const double limit = end(std::numeric_limits<T>::digits);
    if (!(value >= (std::is_signed_v<T> ? -limit : 0.0) && value < limit) || value != std::trunc(value))
      return std::nullopt;
    return static_cast<T>(value);
  } else if constexpr (std::is_integral_v<V>) {
    const T converted = static_cast<T>(value);
    const T limit = static_cast<T>(end(std::numeric_limits<V>::digits));
    if (!(converted < limit) || static_cast<V>(converted) != value) return std::nullopt;
    return converted;
  } else {
    constexpr auto most = std::numeric_limits<T>::max();
    if (std::isfinite(value) && (value > most || value < -most)) return std::nullopt;
    const T converted = static_cast<T>(value);
    if (static_cast<V>(converted) != value) return std::nullopt;
    return converted;
  }
}

}  // namespace detail

template <class T>
T Params::get(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) detail::refuse_parameter(name, nullptr, "");
  return detail::visit(
      [&](const auto& v) -> T {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, T>) {
          return v;
        } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<V, bool>) {
          detail::refuse_parameter(name, value, "is not of the type asked for");
        } else if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<V>) {
          const auto converted = detail::converted_exactly<T>(v);
          if (!converted) detail::refuse_parameter(name, value, "does not fit the type asked for");
          return *converted;
        } else {
          detail::refuse_parameter(name, value, "is not of the type asked for");
        }
      },
      *value);
}

/// "lr=0.01 hidden=64"
std::string to_string(const Params& params);

}  // namespace hypertune::inline v0

template <>
struct fmt::formatter<hypertune::Params> : hypertune::detail::TextFormatter {};
