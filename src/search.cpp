// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/src/search.hpp>
