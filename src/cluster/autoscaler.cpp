// Part of hypertune::cluster.
#include <hypertune/cluster/impl/autoscaler.hpp>
