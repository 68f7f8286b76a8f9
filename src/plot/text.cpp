#include "text.hpp"

#include <hypertune/detail/utf8.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace hypertune::inline v0::plot {

namespace {

// The widths of Helvetica's characters from space to tilde, in thousandths of the font size.
constexpr std::array<short, 95> widths{278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
                                       556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
                                       1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
                                       667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
                                       333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
                                       556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};

// Calls with each character; bytes that are not UTF-8 are U+FFFD.
template <class F>
void each_character(std::string_view text, F f) {
  while (!text.empty()) {
    const auto [bytes, code, valid] = detail::decode_utf8(text);
    f(text.substr(0, bytes), valid ? code : U'\uFFFD');
    text.remove_prefix(bytes);
  }
}

// Halves are rounded away from 0, as people expect, also if they are exact in binary.
double nudged(double value) {
  return std::nextafter(value, std::copysign(std::numeric_limits<double>::infinity(), value));
}

std::string with_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

}  // namespace

std::string number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (std::trunc(value) == value && size < 1e15) return count(value);
  if (size < 1e-3 || size >= 1e7) {
    const std::string text = fmt::format("{:.{}e}", nudged(value), digits - 1);
    const auto e = text.find('e');
    std::string mantissa = text.substr(0, e);
    if (mantissa.find('.') != std::string::npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.ends_with('.')) mantissa.pop_back();
    }
    return with_minus(fmt::format("{}e{}", mantissa, std::atoi(text.c_str() + e + 1)));
  }
  const double rounded = std::strtod(fmt::format("{:.{}g}", nudged(value), digits).c_str(), nullptr);
  return std::trunc(rounded) == rounded ? count(rounded) : with_minus(fmt::format("{}", rounded));
}

std::string count(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), "\u202f");
  return (value < 0 ? "−" : "") + digits;
}

std::string share(double value) {
  const double percent = value * 100;
  return percent > 0 && percent < 1 ? "<1\u202f%" : fmt::format("{}\u202f%", std::floor(percent + 0.5));
}

std::string duration(double seconds) {
  if (seconds < 0) return "−" + duration(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 1) return fmt::format("{} ms", std::max(1.0, std::floor(seconds * 1000 + 0.5)));
  if (seconds < 10) return number(seconds, 2) + " s";
  const auto whole = static_cast<long long>(std::floor(std::min(seconds, 1e15) + 0.5));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

std::string shortened(std::string_view text, std::size_t length) {
  std::string kept;
  std::size_t characters = 0, room = 0;  // where the last character that fits beside "…" ends
  each_character(text.substr(0, 4 * length + 4), [&](std::string_view bytes, char32_t) {
    if (++characters > length) return;
    kept += bytes;
    if (characters < length) room = kept.size();
  });
  return characters <= length ? kept : kept.substr(0, room) + "…";
}

double text_width(std::string_view text, double size) {
  double sum = 0;
  each_character(text, [&](std::string_view, char32_t code) {
    sum += code >= 32 && code < 127 ? widths[code - 32]
           : code == 0x202F         ? 200
           : code == 0x2212         ? 584
           : code >= 0x1100         ? 1000
                                    : 600;
  });
  return sum * size / 1000;
}

std::string escaped(std::string_view text) {
  std::string out;
  each_character(text, [&](std::string_view bytes, char32_t code) {
    const bool allowed =
        code >= 32 ? code != 0xFFFE && code != 0xFFFF && code != 0xFFFD : code == '\t' || code == '\n' || code == '\r';
    switch (code) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += allowed ? bytes : std::string_view("\uFFFD");
    }
  });
  return out;
}

}  // namespace hypertune::inline v0::plot
