// Part of hypertune::cluster.
#include <hypertune/cluster/impl/journal.hpp>
