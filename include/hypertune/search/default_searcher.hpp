// What searches where nobody says what.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

/// Auto, which need not be included for it.
AnySearcher default_searcher();

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/search/impl/default_searcher.hpp>
#endif
