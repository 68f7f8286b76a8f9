// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/show/impl/terminal_display.hpp>
