// Durations and sizes as people write them: "1h30m", "4GiB".
#pragma once

#include <hypertune/detail/format.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {
namespace detail {

/// Removes a decimal number without sign or exponent from the front of `text` and returns it.
inline std::optional<double> take_number(std::string_view& text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, x, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + length || length == 0) return std::nullopt;
  text.remove_prefix(length);
  return x;
}

inline void trim_front(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

/// "1.5 GiB".
inline std::string size_text(double bytes) {
  constexpr std::array<std::pair<double, const char*>, 4> units{
      {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}}};
  for (const auto& [size, name] : units)
    if (bytes >= size) return detail::format("{:.1f} {}", bytes / size, name);
  return detail::format("{} bytes", bytes);
}

}  // namespace detail

/// Seconds of "90", "90s", "10m", "1h30m", "1.5h", "2d", "250ms"; nullopt for anything else.
inline std::optional<double> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}}};
  double total = 0;
  double last = std::numeric_limits<double>::infinity();
  detail::trim_front(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto x = detail::take_number(text);
    if (!x) return std::nullopt;
    detail::trim_front(text);
    const std::size_t length = std::min(text.find_first_of("0123456789. "), text.size());
    const auto unit = text.substr(0, length);
    text.remove_prefix(length);
    detail::trim_front(text);
    double scale = 0;
    for (const auto& [name, seconds] : units)
      if (unit == name) scale = seconds;
    if (unit.empty() && std::isinf(last) && text.empty()) scale = 1;
    if (scale == 0 || scale >= last) return std::nullopt;  // units must descend: "30m1h" is a mistake
    last = scale;
    total += *x * scale;
  }
  return std::isfinite(total) ? std::optional(total) : std::nullopt;
}

/// Bytes of "4096", "500MB", "1.5GB" (powers of 1000) or "4GiB", "512Mi" (powers of 1024); nullopt for anything else.
inline std::optional<std::uint64_t> parse_size(std::string_view text) {
  detail::trim_front(text);
  const auto x = detail::take_number(text);
  if (!x) return std::nullopt;
  detail::trim_front(text);
  double scale = 1;
  if (!text.empty() && text != "B" && text != "b") {
    constexpr std::string_view prefixes = "kmgtp";
    const auto power = prefixes.find(static_cast<char>(text.front() | 0x20));
    if (power == std::string_view::npos) return std::nullopt;
    text.remove_prefix(1);
    const bool binary = !text.empty() && text.front() == 'i';
    if (binary) text.remove_prefix(1);
    if (!text.empty() && text != "B" && text != "b") return std::nullopt;
    scale = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  const double bytes = *x * scale;
  if (!(bytes < 9.2e18)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace hypertune::inline v0
