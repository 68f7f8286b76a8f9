// Space: definitions.
#pragma once

#include <hypertune/space/space.hpp>

namespace hypertune::inline v0::detail {

DimensionDraft prefixed(std::string_view prefix, DimensionDraft draft) {
  draft.name = detail::format("{}.{}", prefix, draft.name);
  draft.scope = detail::format("{}.{}", prefix, draft.scope);
  for (auto& condition : draft.conditions) condition.parent = detail::format("{}.{}", prefix, condition.parent);
  return draft;
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Nested<Params> nested(std::string_view prefix, const Space<Params>& inner) {
  Nested<Params> result;
  for (const auto& dim : inner.dims())
    result.dims.emplace_back(detail::prefixed(prefix, dim.draft()), nullptr, nullptr);
  for (const auto& rule : inner.rules())
    result.rules.push_back({detail::format("{}.{}", prefix, rule.name),
                            [start = detail::format("{}.", prefix), holds = rule.holds](const Params& params) {
                              Params own;
                              for (const auto& [name, value] : params)
                                if (name.starts_with(start)) own.add(name.substr(start.size()), value);
                              return holds(own);
                            }});
  return result;
}

}  // namespace hypertune::inline v0
