// Part of hypertune::cluster.
#include <hypertune/cluster/impl/cluster.hpp>
