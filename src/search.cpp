// Part of hypertune::hypertune: see detail/linkage.hpp.
#include <hypertune/src/search.hpp>
