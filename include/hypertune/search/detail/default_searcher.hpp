// The searcher that is used if the user names none.
#pragma once

#include <hypertune/search/searcher.hpp>

namespace hypertune::inline v0 {

/// Returns Auto, without including its header here.
AnySearcher default_searcher();

}  // namespace hypertune::inline v0
