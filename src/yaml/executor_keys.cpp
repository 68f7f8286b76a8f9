// Part of hypertune::yaml_compiled: see config/linkage.hpp.
#include <hypertune/config/impl/executor_keys.hpp>
