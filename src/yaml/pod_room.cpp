// Part of hypertune::yaml_compiled: see config/linkage.hpp.
#include <hypertune/config/impl/pod_room.hpp>
