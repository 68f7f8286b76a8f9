// Part of hypertune::hypertune: see <hypertune/src.hpp>.
#include <hypertune/detail/parts.hpp>
#include <hypertune/src/core/tune.hpp>

// The core refers to the part weakly, for which a linker takes no object out of a library.
[[gnu::used]] static const char* const hypertune_display =
    &include_hypertune_src_display_hpp_or_link_hypertune_hypertune;
