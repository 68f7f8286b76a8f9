// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/local/src.hpp>
