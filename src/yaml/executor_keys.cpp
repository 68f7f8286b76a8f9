// Part of hypertune::yaml: see config/linkage.hpp.
#include <hypertune/config/impl/executor_keys.hpp>
