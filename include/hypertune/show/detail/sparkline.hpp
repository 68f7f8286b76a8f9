// How the best value developed, as a line of characters: "▁▂▅▇██".
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// A value that was the best one from the given number of reports on, until the next point.
struct BestPoint {
  std::int64_t reports = 0;
  double value = 0;
};

namespace detail::terminal {

inline constexpr std::size_t best_points = 64;

/// Adds a point. If there are too many, every second one is removed, but never the first one: it is where the curve
/// begins.
inline void add_best_point(std::vector<BestPoint>& curve, BestPoint point) {
  if (!curve.empty() && curve.back().reports == point.reports) {
    curve.back() = point;
    return;
  }
  if (curve.size() == best_points) {
    std::size_t kept = 1;
    for (std::size_t i = 2; i < curve.size(); i += 2) curve[kept++] = curve[i];
    curve.resize(kept);
  }
  curve.push_back(point);
}

/// The curve from its first point to `now` (in reports), in at most `width` columns; "" if there is no visible change
/// or no room. If the curve began far off, its later part gets most of the height: values worse than the one after a
/// quarter of the time are drawn at the edge.
inline std::string sparkline(const std::vector<BestPoint>& curve, std::int64_t now, std::size_t width) {
  static constexpr std::string_view levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (curve.size() < 2 || width < 4 || now <= curve.front().reports) return {};
  const auto columns = static_cast<std::size_t>(
      std::min<std::int64_t>(static_cast<std::int64_t>(width), now - curve.front().reports + 1));
  if (columns < 2) return {};
  std::vector<double> values;
  std::size_t at = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    const double x = static_cast<double>(curve.front().reports) + static_cast<double>(now - curve.front().reports) *
                                                                      static_cast<double>(i) /
                                                                      static_cast<double>(columns - 1);
    while (at + 1 < curve.size() && static_cast<double>(curve[at + 1].reports) <= x + 1e-9) ++at;
    values.push_back(curve[at].value);
  }
  const double last = values.back();
  double first = values[columns / 4];
  if (first == last) first = values.front();
  const double low = std::min(first, last), high = std::max(first, last), span = high - low;
  if (!(span > 0) || !std::isfinite(span)) return {};
  std::string text;
  for (const double value : values) text += levels[std::lround(7 * (std::clamp(value, low, high) - low) / span)];
  return text;
}

/// Whether a terminal can show these characters, according to the locale (the first of LC_ALL, LC_CTYPE and LANG that
/// is not empty) and TERM. Linux's own console has only half of them.
inline bool takes_unicode(const char* all, const char* ctype, const char* lang, const char* term) {
  if (term != nullptr && std::string_view(term) == "linux") return false;
  for (const char* locale : {all, ctype, lang}) {
    if (locale == nullptr || *locale == '\0') continue;
    std::string letters;  // without punctuation: "UTF-8" is the same as "utf8"
    for (const char* c = locale; *c != '\0'; ++c)
      if (std::isalnum(static_cast<unsigned char>(*c)) != 0)
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    return letters.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace detail::terminal

}  // namespace hypertune::inline v0
