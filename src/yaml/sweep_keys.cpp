// Part of hypertune::yaml: see config/linkage.hpp.
#include <hypertune/config/impl/sweep_keys.hpp>
