// Part of hypertune::cluster.
#include <hypertune/cluster/impl/scaler.hpp>
