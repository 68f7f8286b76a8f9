// The values of one configuration outside the program: definitions.
#pragma once

#include <hypertune/space/params.hpp>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE const Value* Params::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

HYPERTUNE_INLINE void Params::set(std::string name, Value value) {
  for (auto& entry : entries_)
    if (entry.first == name) {
      entry.second = std::move(value);
      return;
    }
  entries_.emplace_back(std::move(name), std::move(value));
}

HYPERTUNE_INLINE std::string to_string(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += (text.empty() ? "" : " ") + name + '=' + to_string(value);
  return text;
}

}  // namespace hypertune::inline v0
