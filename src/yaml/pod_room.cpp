// Part of hypertune::yaml_compiled: see <hypertune/config/src.hpp>.
#include <hypertune/config/impl/pod_room.hpp>
