// Part of hypertune::yaml: see <hypertune/config/src.hpp>.
#include <hypertune/config/impl/old_words.hpp>
