// "Did you mean …?": the known word nearest to a misspelt one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// The number of letters to be inserted, removed, replaced or swapped with their neighbour (optimal string alignment).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// The word that was probably meant; empty if none is near.
template <class Words>
std::string nearest(std::string_view word, const Words& words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(word.size(), 64) / 3) + 1;
  if (word.size() > 64) return best;
  for (const auto& candidate : words) {
    const std::string_view text = candidate;
    if (text.size() > 64 || text == word) continue;
    const std::size_t distance = edit_distance(word, text);
    if (distance < least && distance < text.size()) {
      least = distance;
      best = text;
    }
  }
  return best;
}

/// ": did you mean 'hidden'?", or, if nothing is near, "; known here: a, b, c".
template <class Words>
std::string suggestion(std::string_view word, const Words& words) {
  if (const auto best = nearest(word, words); !best.empty()) return fmt::format(": did you mean '{}'?", best);
  std::string text;
  std::size_t n = 0;
  for (const auto& candidate : words) {
    if (++n > 40) return text + ", …";
    text += fmt::format("{}{}", text.empty() ? "; known here: " : ", ", std::string_view(candidate));
  }
  return text;
}

}  // namespace hypertune::inline v0::detail
