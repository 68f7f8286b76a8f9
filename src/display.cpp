// Part of hypertune::hypertune: see <hypertune/src.hpp>.
#include <hypertune/src/display.hpp>
