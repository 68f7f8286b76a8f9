// visit: std::visit of one variant that compiles fast.
#pragma once

#include <cstddef>
#include <type_traits>
#include <variant>

namespace hypertune::inline v0::detail {

/// Calls `f` with the value in `variant`, by a switch. std::visit would add a table and four functions for each
/// alternative of each call, which was a twentieth of what it costs to compile a file that tunes.
template <std::size_t First = 0, class F, class Variant>
constexpr decltype(auto) visit(F&& f, Variant& variant) {
  constexpr std::size_t size = std::variant_size_v<std::remove_const_t<Variant>>;
#define HYPERTUNE_VISIT_CASE(n)                                                      \
  case First + (n):                                                                  \
    if constexpr (First + (n) < size) return f(*std::get_if<First + (n)>(&variant)); \
    [[fallthrough]]
  switch (variant.index()) {
    HYPERTUNE_VISIT_CASE(0);
    HYPERTUNE_VISIT_CASE(1);
    HYPERTUNE_VISIT_CASE(2);
    HYPERTUNE_VISIT_CASE(3);
    HYPERTUNE_VISIT_CASE(4);
    HYPERTUNE_VISIT_CASE(5);
    HYPERTUNE_VISIT_CASE(6);
    HYPERTUNE_VISIT_CASE(7);
    default:
      if constexpr (First + 8 < size) return visit<First + 8>(f, variant);
  }
#undef HYPERTUNE_VISIT_CASE
  throw std::bad_variant_access();
}

}  // namespace hypertune::inline v0::detail
