// Descriptions of the options of algorithms and executors. Each option is described once; the code that checks, parses
// and documents options uses this description.
#pragma once

#include <hypertune/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace hypertune::inline v0 {

/// An option has an invalid value: "asha: grace_period is 0, but must be at least 1".
class OptionError : public Error {
 public:
  OptionError(std::string_view type, std::string_view option, std::string_view problem);
  const std::string& option() const noexcept { return option_; }

 private:
  std::string option_;
};

/// The values that a number may have, and the unit in which files give it.
struct Bounds {
  enum class Unit : std::uint8_t {
    none,
    seconds,  ///< files say "90s", "1h30m"
    bytes,    ///< files say "500MB", "4GiB"
  };

  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false, below_most = false;  ///< `least` or `most` itself is not allowed
  bool zero = false;                             ///< 0 is allowed as well: it means "none" or "automatic"
  Unit unit = Unit::none;
  bool no_default = false;  ///< 0 in a program stands for "not given", so that the reference names no default

  constexpr Bounds below(double x) const { return {least, x, above_least, true, zero, unit}; }
  constexpr Bounds at_most(double x) const { return {least, x, above_least, false, zero, unit}; }
  constexpr Bounds or_zero() const { return {least, most, above_least, below_most, true, unit}; }
  constexpr Bounds in(Unit files) const { return {least, most, above_least, below_most, zero, files}; }
  /// The last of the chain.
  constexpr Bounds without_default() const { return {least, most, above_least, below_most, zero, unit, true}; }

  constexpr bool allow(double x) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return (zero && x == 0) ||
           (x < infinity && (above_least ? x > least : x >= least) && (below_most ? x < most : x <= most));
  }
  /// "at least 1", "above 0 and at most 0.5", "from 0 to 1", "0 or at least 4".
  std::string text() const;
};

constexpr Bounds at_least(double x) { return {.least = x}; }
constexpr Bounds above(double x) { return {.least = x, .above_least = true}; }
constexpr Bounds between(double least, double most) { return {.least = least, .most = most}; }

/// A type that describes its options: its name in files, and one call of `option` for each option:
/// ```cpp
/// struct Asha {
///   static constexpr const char* type = "asha";
///   int grace_period = 1;
///   bool promotion = false;
///   static void describe(auto& self, auto&& option) {
///     option("grace_period", self.grace_period, at_least(1), "steps that every trial gets, at least");
///     option("promotion", self.promotion, "whether trials wait until they are promoted");
///   }
/// };
/// ```
/// An enum has a list of words for its values, in their order, before the text: `{"auto", "own"}`. Members may be
/// structs that describe options themselves, and other types that have a form in files (config/option_forms.hpp); a
/// member whose type does not say its form has a tag of one before the text: `SlurmTime{}`.
/// The default of an option is the initial value of its member. Checks that involve several options (two that
/// contradict each other) belong in `void check() const`, which throws an OptionError.
template <class T>
concept Described = requires(T& options, int visitor) {
  { T::type } -> std::convertible_to<std::string_view>;
  T::describe(options, visitor);
};

/// A type that stands for the form of an option in files. It may have `Bounds bounds`.
template <class F>
concept FormTag = requires { typename F::form_tag; };

namespace detail {

[[noreturn]] void refuse_option(const char* type, const char* name, double value, const Bounds& bounds);

/// Checks the bounds of each option.
struct OptionCheck {
  const char* type;

  void operator()(const char* name, const auto& value, const Bounds& bounds, const char* text) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value, bounds, text);
    } else if (bounds.no_default && value == std::remove_cvref_t<decltype(value)>()) {
      return;
    } else if (!bounds.allow(static_cast<double>(value))) {
      refuse_option(type, name, static_cast<double>(value), bounds);
    }
  }
  void operator()(const char*, const auto&, const char*) const {}
  void operator()(const char*, const auto&, std::initializer_list<const char*>, const char*) const {}
  template <FormTag F>
  void operator()(const char* name, const auto& value, const F& form, const char* text) const {
    if constexpr (requires { form.bounds; }) (*this)(name, value, form.bounds, text);
  }
};

/// Writes the values as text, in the form that files use.
struct OptionText {
  std::string& text;

  void put(const char* name, std::string_view value) const;
  void put_number(const char* name, double value, const Bounds& bounds) const;
  void put_whole(const char* name, const std::string& value, const Bounds& bounds) const;
  void operator()(const char* name, const auto& value, const Bounds& bounds, const char* meaning) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value, bounds, meaning);
    } else if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
      put_whole(name, std::to_string(value), bounds);
    } else {
      put_number(name, value, bounds);
    }
  }
  template <class M>
  void operator()(const char* name, const M& value, const char*) const {
    if constexpr (std::same_as<M, bool>) put(name, value ? "true" : "false");
  }
  void operator()(const char* name, const auto& value, std::initializer_list<const char*> words, const char*) const {
    put(name, words.begin()[static_cast<std::size_t>(value)]);
  }
  template <FormTag F>
  void operator()(const char*, const auto&, const F&, const char*) const {}
};

}  // namespace detail

/// The described options that are numbers, booleans or enums, with their current values, in the form of a YAML flow
/// map: "grace_period: 1, max_steps: 81, promotion: false". Empty if T describes no options. Strings, paths and options with a form of
/// their own are left out.
template <class T>
std::string options_text([[maybe_unused]] const T& options) {
  std::string text;
  if constexpr (Described<T>) T::describe(options, detail::OptionText{text});
  return text;
}

/// Throws an Error if an option is invalid: checks the bounds of the described options, then calls options.check() if
/// it exists.
template <class T>
void check_options(const T& options) {
  if constexpr (Described<T>) T::describe(options, detail::OptionCheck{T::type});
  if constexpr (requires { options.check(); }) options.check();
}

}  // namespace hypertune::inline v0
