// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/execute/impl/threads.hpp>
