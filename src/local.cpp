// Part of hypertune::hypertune: see detail/linkage.hpp.
#include <hypertune/local/src.hpp>
