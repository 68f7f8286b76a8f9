// Part of hypertune::cluster.
#include <hypertune/cluster/impl/reach.hpp>
#include <hypertune/cluster/impl/sync.hpp>
