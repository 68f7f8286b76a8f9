// Part of hypertune::cluster.
#include <hypertune/cluster/impl/job.hpp>
