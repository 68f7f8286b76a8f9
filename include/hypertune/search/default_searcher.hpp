// What searches where nobody says what.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune {

/// Auto, which need not be included for it.
template <class = void>
AnySearcher default_searcher();

}  // namespace hypertune

#ifdef HYPERTUNE_COMPILED
namespace hypertune {
extern template AnySearcher default_searcher<>();
}
#else
#include <hypertune/search/impl/default_searcher.hpp>
#endif
