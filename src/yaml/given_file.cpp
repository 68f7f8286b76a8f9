// Part of hypertune::yaml: see config/linkage.hpp.
#include <hypertune/config/impl/given_file.hpp>
