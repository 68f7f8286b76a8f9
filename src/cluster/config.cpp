// Part of hypertune::cluster.
#include <hypertune/cluster/impl/config.hpp>
