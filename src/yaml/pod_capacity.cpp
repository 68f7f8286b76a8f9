// Part of hypertune::yaml: see <hypertune/config/src.hpp>.
#include <hypertune/config/impl/pod_capacity.hpp>
