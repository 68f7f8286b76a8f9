// Part of hypertune::hypertune: see <hypertune/src.hpp>.
#include <hypertune/detail/parts.hpp>
#include <hypertune/src/core/execute.hpp>

// The core refers to the part weakly, for which a linker takes no object out of a library.
[[gnu::used]] static const char* const hypertune_groups = &include_hypertune_src_groups_hpp_or_link_hypertune_hypertune;
