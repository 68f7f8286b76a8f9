// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/checkpoint/impl/local_store.hpp>
