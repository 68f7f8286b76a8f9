// What differs between two texts of SearchSpace::describe(): definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/space/detail/space_changes.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hypertune::inline v0::detail {

/// The length of the quoted text at the beginning of `text`, with its quotes; 0 if there is none.
inline std::size_t quoted_length(std::string_view text) {
  if (!text.starts_with('"')) return 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return 0;
}

/// Parameters and constraints with what is written about them, in order.
inline std::vector<std::pair<std::string_view, std::string_view>> described_parts(std::string_view space) {
  std::vector<std::pair<std::string_view, std::string_view>> parts;
  while (!space.empty()) {
    std::string_view line = take_until(space, '\n');
    constexpr std::string_view constraints = "constraints: [";
    if (line.starts_with(constraints)) {
      line.remove_prefix(constraints.size());
      while (const std::size_t length = quoted_length(line)) {
        parts.emplace_back(line.substr(0, length), std::string_view());
        line.remove_prefix(length);
        line.remove_prefix(std::min(line.find_first_not_of(", "), line.size()));
      }
      continue;
    }
    const std::size_t name = line.starts_with('"') ? quoted_length(line) : line.find(": ");
    if (name == 0 || name >= line.size()) continue;
    parts.emplace_back(line.substr(0, name), line.substr(std::min(name + 2, line.size())));
  }
  return parts;
}

std::vector<std::string> space_changes(std::string_view before, std::string_view now, std::size_t most) {
  std::vector<std::string> changes;
  if (before.empty() || before == now) return changes;
  const auto old_parts = described_parts(before), new_parts = described_parts(now);
  // A constraint has nothing but its name; a parameter's text is never empty.
  const auto find = [](const auto& parts, const auto& part) {
    return std::find_if(parts.begin(), parts.end(), [&](const auto& other) {
      return other.first == part.first && other.second.empty() == part.second.empty();
    });
  };
  const auto named = [](const auto& part) {
    return part.second.empty() ? detail::format("the constraint {}", part.first)
                               : detail::format("{}: {}", part.first, part.second);
  };
  for (const auto& part : old_parts) {
    const auto other = find(new_parts, part);
    if (other == new_parts.end())
      changes.push_back(named(part) + " is gone");
    else if (other->second != part.second)
      changes.push_back(detail::format("{} was {} and is {} now", part.first, part.second, other->second));
  }
  for (const auto& part : new_parts)
    if (find(old_parts, part) == old_parts.end()) changes.push_back(named(part) + " is new");
  if (changes.size() > most) {
    const std::size_t more = changes.size() - most + 1;
    changes.resize(most - 1);
    changes.push_back(detail::format("{} more changes", more));
  }
  return changes;
}

}  // namespace hypertune::inline v0::detail
