// Part of hypertune::hypertune: see <hypertune/src.hpp>.
#include <hypertune/local/src.hpp>
