// Part of hypertune::cluster.
#include <hypertune/cluster/impl/cost_file.hpp>
