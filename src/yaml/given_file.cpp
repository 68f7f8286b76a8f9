// Part of hypertune::yaml_compiled: see config/linkage.hpp.
#include <hypertune/config/impl/given_file.hpp>
