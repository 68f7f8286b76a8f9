// Part of hypertune::cluster.
#include <hypertune/cluster/impl/executor.hpp>
