// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/space/detail/search_space.hpp>
