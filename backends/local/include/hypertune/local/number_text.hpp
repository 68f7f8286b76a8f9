// Reads numbers as people print them: whole, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::local {

/// What a number that is read is counted in, where the metric names it: the value of `1.5min` is 90 in seconds.
enum class NumberUnit : std::uint8_t {
  none,     ///< not named: what stands behind the number must not change what it is worth
  percent,  ///< 91.5% is 91.5
  seconds,  ///< of 12.3ms, 3m12s, 1:02:03
  bytes,    ///< of 1204kB (1000), 1.5MiB (1024)
  count,    ///< of 12.3k, 1.2Mbit/s
};

/// The unit with this name: percent, seconds, bytes, count.
std::optional<NumberUnit> number_unit_named(std::string_view name);
/// … and its name; empty for none.
std::string_view name_of(NumberUnit unit);

/// Where an expression has found a number.
struct NumberPlace {
  std::string_view line;
  std::size_t begin = 0, end = 0;      ///< of the group
  std::size_t match_end = 0;           ///< of the whole match
  std::string_view before{}, after{};  ///< the text of the expression before and after the group
};

/// The number of which the group has at least a part: `1.2D-03` for `([0-9.]+)` as well. What the expression itself
/// names right before or behind the group is not taken as part of it. nullopt if it is no number, or may be meant in
/// more than one way; then `why` says which. `unit_text`, where no unit is named: set to the letters right behind the
/// number, or to a unit that stands there apart or in the expression; units of time by one name each (`s` for `sec`).
std::optional<double> number_in_line(const NumberPlace& place, NumberUnit unit, std::string& why,
                                     std::string* unit_text = nullptr);

/// The number of a text which has nothing else, except for punctuation at its end.
std::optional<double> number_in_text(std::string_view text, std::string& why);

/// What the letters right behind a number say that it is counted in: `ms`, `MiB/s`, `%`, `k`. none: they are no unit, or
/// may mean something else, as `m` does.
NumberUnit unit_of_letters(std::string_view letters);

/// A number at the beginning of a text, read as number_in_line() reads it.
struct LeadingNumber {
  double value = 0;        ///< of several times, 3m12s: their sum in seconds
  std::string letters;     ///< right behind it: "%", "k", "ms/step"; of several times: "s"
  std::size_t length = 0;  ///< with the letters
  bool grouped = false;    ///< a whole number that has a comma for the thousands: 1,234
};
std::optional<LeadingNumber> number_at_begin(std::string_view text);

namespace detail {

/// The text of an expression before and after its first group: what it says about the surroundings of the number.
struct GroupSurroundings {
  std::string before, after;
};
GroupSurroundings surroundings_of_group(std::string_view pattern);

/// Digits with a point and an exponent, as in JSON; nothing else. What is too large is infinity.
std::optional<double> plain_number(std::string_view token);

}  // namespace detail

}  // namespace hypertune::inline v0::local
