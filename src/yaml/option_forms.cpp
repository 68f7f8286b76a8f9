// Part of hypertune::yaml: see <hypertune/config/src.hpp>.
#include <hypertune/config/impl/option_forms.hpp>
