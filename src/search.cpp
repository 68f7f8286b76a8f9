// Part of hypertune::hypertune: see <hypertune/src.hpp>.
#include <hypertune/detail/parts.hpp>
#include <hypertune/src/core/search.hpp>

// The core refers to the part weakly, for which a linker takes no object out of a library.
[[gnu::used]] static const char* const hypertune_models = &include_hypertune_src_models_hpp_or_link_hypertune_hypertune;
