// The default searcher: definition.
#pragma once

#include <hypertune/search/auto.hpp>
#include <hypertune/search/detail/default_searcher.hpp>

namespace hypertune::inline v0 {

AnySearcher default_searcher() { return Auto{}; }

}  // namespace hypertune::inline v0
