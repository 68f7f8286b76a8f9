// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/record/impl/results.hpp>
#include <hypertune/record/impl/trial_result.hpp>
