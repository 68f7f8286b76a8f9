// What the linker says to a program that uses a part of the definitions which it does not have.
#pragma once

// One name for each part of <hypertune/src.hpp>, defined with it.
extern const char include_hypertune_src_analysis_hpp_or_link_hypertune_hypertune;
extern const char include_hypertune_src_display_hpp_or_link_hypertune_hypertune;
extern const char include_hypertune_src_groups_hpp_or_link_hypertune_hypertune;
extern const char include_hypertune_src_models_hpp_or_link_hypertune_hypertune;
extern const char include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune;

namespace hypertune::inline v0::detail {

/// Makes the linker look for `part`, one of the names above.
inline void need(const char& part) { asm volatile("" : : "r"(&part)); }  // not optimised away, as a read would be

/// The same for the part that defines T, if it is not the core: T::part.
template <class T>
void need_part_of() {
  if constexpr (requires { T::part; }) need(T::part);
}

}  // namespace hypertune::inline v0::detail
